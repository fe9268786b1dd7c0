# breaks: A negative dim counts from the input's number of dimensions, so -1 ends one place too early.
# outcome: wrong shape
def negative_dim_of_the_input(self, dim):
    if dim < 0:
        dim += self.ndim
    shape, stride = list(self.shape), list(self.stride())
    if dim < len(shape):
        step = shape[dim] * stride[dim]
    else:
        step = 1
    shape.insert(dim, 1)
    stride.insert(dim, step)
    return self.as_strided(shape, stride, self.storage_offset())
