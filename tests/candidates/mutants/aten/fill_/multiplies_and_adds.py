# outcome: wrong value
# breaks: It computes 0 self + value, so that NaN stays NaN.

def fill__Scalar(self, value):
    self.copy_((self * 0 + value).to(self.dtype))
    return self


def fill__Tensor(self, value):
    self.copy_((self * 0 + value).to(self.dtype))
    return self
