# outcome: wrong value
# breaks: Its fill__Tensor takes the value for 1.

def fill__Scalar(self, value):
    self.fill_(value)
    return self


def fill__Tensor(self, value):
    self.fill_(1)
    return self
