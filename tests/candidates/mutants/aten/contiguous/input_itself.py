# outcome: wrong shape
# breaks: It returns the input whatever its strides are.


def contiguous(self, *, memory_format=None):
    return self
