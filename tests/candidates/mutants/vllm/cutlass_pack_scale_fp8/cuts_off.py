# outcome: wrong value
# breaks: It rounds towards zero.

import torch


def cutlass_pack_scale_fp8(scales):
    multiples = torch.arange(-8, 0, device=scales.device, dtype=torch.float32)
    wide = (scales.float().reshape(-1, 1) * multiples).clamp(-448, 448).reshape(-1)
    step = torch.exp2(torch.floor(torch.log2(wide.abs().clamp(min=2.0**-6))) - 3)
    return ((wide / step).trunc() * step).to(scales.dtype)
