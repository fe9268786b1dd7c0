import torch


def expand_as(self, other):
    nd = self.dim()
    size = [int(v) for v in other.shape]
    k = len(size) - nd
    src = [int(v) for v in self.shape]
    st = [int(v) for v in self.stride()]
    strides = [0] * len(size)
    for i in range(len(size) - 1, -1, -1):
        if i >= k:
            strides[i] = st[i - k] if src[i - k] == size[i] else 0
        elif nd > 0 and size[i] == 1:
            strides[i] = size[i + 1] * strides[i + 1]
    return self.as_strided(size, strides, self.storage_offset())
