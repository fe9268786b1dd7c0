import torch


def as_strided(self, size, stride, storage_offset=None):
    if storage_offset is None:
        storage_offset = self.storage_offset()
    out = torch.empty((0,), dtype=self.dtype, device=self.device)
    out.set_(self.untyped_storage(), int(storage_offset), tuple(int(v) for v in size), tuple(int(v) for v in stride))
    # a lazily conjugated or negated tensor stays one
    if self.is_conj():
        out = out.conj()
    if self.is_neg():
        out = torch._neg_view(out)
    return out
