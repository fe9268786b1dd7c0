def mm__default_kernel_impl(self, mat2):
    return self.matmul(mat2)
