import torch


def expand_as(self, other):
    target = [int(v) for v in other.shape]
    shape = [int(v) for v in self.shape]
    steps = [int(v) for v in self.stride()]
    nd, k = len(target), len(target) - len(shape)
    if k < 0:
        raise RuntimeError("expand_as: self has more dimensions than other")
    size, stride = [0] * nd, [0] * nd
    for i in range(nd - 1, -1, -1):
        d = i - k
        if d >= 0:
            s, st = shape[d], steps[d]
        elif shape:
            s, st = 1, size[i + 1] * stride[i + 1]
        else:
            s, st = 1, 0
        if s != target[i]:
            if s != 1:
                raise RuntimeError("expand_as: the sizes do not fit")
            s, st = target[i], 0
        size[i], stride[i] = s, st
    return self.as_strided(size, stride, self.storage_offset())
