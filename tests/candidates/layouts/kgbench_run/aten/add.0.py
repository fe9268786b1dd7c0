def add(self, other, alpha=1):
    return self + (other if alpha == 1 else other * alpha)
