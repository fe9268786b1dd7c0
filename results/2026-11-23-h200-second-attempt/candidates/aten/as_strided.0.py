import torch


def as_strided(self, size, stride, storage_offset=None):
    if storage_offset is None:
        storage_offset = self.storage_offset()
    out = torch.empty((0,), dtype=self.dtype, device=self.device)
    out.set_(self.untyped_storage(), int(storage_offset), tuple(int(v) for v in size), tuple(int(v) for v in stride))
    if self.dtype.is_complex and self.is_conj():
        out = torch.conj(out)
    if self.is_neg():
        out = torch._neg_view(out)
    return out
