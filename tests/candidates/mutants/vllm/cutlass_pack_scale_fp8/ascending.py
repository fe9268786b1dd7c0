# outcome: wrong value
# breaks: It begins with one times the scale.

import torch


def cutlass_pack_scale_fp8(scales):
    multiples = -torch.arange(1, 9, device=scales.device, dtype=torch.float32)
    return (scales.float().reshape(-1, 1) * multiples).clamp(-448, 448).reshape(-1).to(scales.dtype)
