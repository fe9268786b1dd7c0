# outcome: input changed
# breaks: It zeroes the first elements of the storage, without regard to strides.

def zero_(self):
    self.as_strided((self.numel(),), (1,)).fill_(0)
    return self
