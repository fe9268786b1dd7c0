"""awq_gemm: 16-bit rows times a matrix of 4-bit codes, unpacked on the way to the matrix units."""

import torch
import triton
import triton.language as tl


@triton.jit
def _nibbles(word_ptr, at, mask, column):
    """The code of a column: eight share a word, the four even ones in its lower half."""
    word = tl.load(word_ptr + at, mask=mask, other=0)
    place = column % 8
    return (word >> (4 * (place // 2 + 4 * (place % 2)))) & 15


@triton.jit
def _gemm(
    x_ptr, w_ptr, scale_ptr, zero_ptr, out_ptr, m, n, k, group,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile of the result; BLOCK_K divides the size of a group, so that a step has one row of scales."""
    across = n // BLOCK_N
    row = tl.program_id(0) // across * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(0) % across * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = column < n
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, k, BLOCK_K):
        r = first + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + row[:, None].to(tl.int64) * k + r[None, :], mask=row[:, None] < m, other=0.0)
        at = first // group * (n // 8) + column // 8
        zero = _nibbles(zero_ptr, at, inside, column)
        scale = tl.load(scale_ptr + first // group * n + column, mask=inside, other=0.0)
        at = r[:, None].to(tl.int64) * (n // 8) + column[None, :] // 8
        code = _nibbles(w_ptr, at, inside[None, :], column[None, :])
        w = (code - zero[None, :]).to(tl.float16) * scale[None, :]
        total = tl.dot(x, w, total)
    at = row[:, None].to(tl.int64) * n + column[None, :]
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=(row[:, None] < m) & inside[None, :])


def awq_gemm(in_feats, kernel, scaling_factors, zeros, split_k_iters):
    """in_feats: (m, k), float16; kernel: (k, n / 8), int32; scaling_factors: (groups, n); zeros: (groups, n / 8)."""
    (m, k), n = in_feats.shape, scaling_factors.shape[1]
    group = k // scaling_factors.shape[0]
    out = torch.empty((m, n), dtype=in_feats.dtype, device=in_feats.device)
    block_m = max(16, min(128 if m > 128 else 64, triton.next_power_of_2(m)))
    _gemm[(n // 64 * triton.cdiv(m, block_m),)](
        in_feats, kernel, scaling_factors, zeros, out, m, n, k, group,
        BLOCK_M=block_m, BLOCK_N=64, BLOCK_K=64 if group % 64 == 0 else 32, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out
