# outcome: rejected
# breaks: It returns self where the dtype stays.

import torch


def _to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    if dtype in (None, self.dtype) and memory_format is None:
        return self
    return torch.ops.aten._to_copy(self, dtype=dtype, memory_format=memory_format)
