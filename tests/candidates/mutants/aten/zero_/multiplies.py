# outcome: wrong value
# breaks: It multiplies with zero, so that NaN stays NaN.

def zero_(self):
    return self.mul_(0)
