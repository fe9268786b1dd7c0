# outcome: rejected
# breaks: It returns self also where a copy is asked.


def to_dtype(self, dtype, non_blocking=False, copy=False, memory_format=None):
    return self.to(dtype) if memory_format is None else self.to(dtype, memory_format=memory_format)
