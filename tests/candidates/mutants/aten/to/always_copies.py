# outcome: wrong value
# breaks: It copies also where self is right.


def to_dtype(self, dtype, non_blocking=False, copy=False, memory_format=None):
    if memory_format is None:
        return self.to(dtype, copy=True)
    return self.to(dtype, copy=True, memory_format=memory_format)
