# outcome: wrong value
# breaks: Bytes of fp8 are moved into float16's place, which makes 480 of NaN.

import torch


def _float(codes):
    bits = codes.view(torch.uint8).short()
    moved = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
    return moved.view(torch.float16).float() * 256


def cutlass_scaled_mm_fp8(out, a, b, a_scales, b_scales, bias):
    result = _float(a) @ _float(b) * a_scales * b_scales
    out.copy_(result if bias is None else result + bias.float())


def cutlass_scaled_mm_int8(out, a, b, a_scales, b_scales, bias):
    result = (a.double() @ b.double()).float() * a_scales * b_scales
    out.copy_(result if bias is None else result + bias.float())
