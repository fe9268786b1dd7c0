def add_Tensor(self, other, *, alpha=1):
    return self + (other if alpha == 1 else other * alpha)


def add_Scalar(self, other, alpha=1):
    return self + (other if alpha == 1 else other * alpha)
