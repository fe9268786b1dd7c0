# breaks: It zeroes the first elements of the storage, without regard to strides.
# outcome: input changed
def as_if_dense(self):
    self.as_strided((self.numel(),), (1,)).fill_(0)
    return self


# breaks: It multiplies with zero, so that NaN stays NaN.
def multiplies(self):
    return self.mul_(0)
