"""cutlass_pack_scale_fp8: each scale of float8_e4m3fn becomes eight, its products with -8 to -1, rounded to fp8."""

import torch
import triton
import triton.language as tl


@triton.jit
def _pack(out_ptr, scale_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(scale_ptr + i, mask=i < n, other=0).to(tl.float8e4nv, bitcast=True).to(tl.float32)
    j = tl.arange(0, 8)
    product = scale[:, None] * (j - 8).to(tl.float32)[None, :]
    code = product.to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    tl.store(out_ptr + i[:, None] * 8 + j[None, :], code, mask=(i < n)[:, None])


def cutlass_pack_scale_fp8(scales):
    """scales: float8_e4m3fn of any shape; returns eight times as many, one-dimensional."""
    n = scales.numel()
    out = torch.empty((8 * n,), dtype=scales.dtype, device=scales.device)
    if n:
        codes = scales.contiguous().view(torch.uint8)
        _pack[(triton.cdiv(n, 256),)](out.view(torch.uint8), codes, n, BLOCK=256, num_warps=4)
    return out
