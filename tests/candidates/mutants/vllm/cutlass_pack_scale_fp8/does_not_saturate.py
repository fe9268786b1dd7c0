# outcome: wrong value
# breaks: It makes NaN of what is too large.

import torch


def cutlass_pack_scale_fp8(scales):
    multiples = torch.arange(-8, 0, device=scales.device, dtype=torch.float32)
    wide = (scales.float().reshape(-1, 1) * multiples).reshape(-1)
    return torch.where(wide.abs() > 448, torch.full_like(wide, float("nan")), wide).to(scales.dtype)
