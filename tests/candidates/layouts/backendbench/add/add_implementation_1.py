def add_kernel_impl(self, other, alpha=1):
    return self + (other if alpha == 1 else other * alpha)
