"""bmm: a tile of a product by each program; tl.dot sums in float32, numbers of 64 bits are multiplied one by one.

Strides of both operands are taken as they are. Tiles of one product follow each other in groups of rows, so that they
share what they read in the L2 cache.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _tile(tiles_m, tiles_n, GROUP: tl.constexpr):
    """Which product, and which of its tiles down and across."""
    program = tl.program_id(0)
    tile = program % (tiles_m * tiles_n)
    first = tile // (GROUP * tiles_n) * GROUP
    height = tl.minimum(tiles_m - first, GROUP)
    place = tile % (GROUP * tiles_n)
    return (program // (tiles_m * tiles_n)).to(tl.int64), first + place % height, place // height


@triton.jit
def _dot(
    a_ptr, b_ptr, out_ptr, m, n, k, turns, a_batch, a_row, a_step, b_batch, b_step, b_column, tiles_m, tiles_n,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WHOLE: tl.constexpr, WHOLE_K: tl.constexpr,
):  # fmt: skip
    """out (z, m, n) is row-major. WHOLE, WHOLE_K: tiles cover m and n, or k, without a rest."""
    z, down, across = _tile(tiles_m, tiles_n, 8)
    row = (down * M + tl.arange(0, M)).to(tl.int64)
    column = (across * N + tl.arange(0, N)).to(tl.int64)
    step = tl.arange(0, K)
    far = step.to(tl.int64)
    a_at = a_ptr + z * a_batch + row[:, None] * a_row + far[None, :] * a_step
    b_at = b_ptr + z * b_batch + far[:, None] * b_step + column[None, :] * b_column
    total = tl.zeros((M, N), tl.float32)
    for turn in range(turns):
        if WHOLE and WHOLE_K:
            a, b = tl.load(a_at), tl.load(b_at)
        elif WHOLE_K:
            a, b = tl.load(a_at, (row < m)[:, None], 0.0), tl.load(b_at, (column < n)[None, :], 0.0)
        else:
            inside = step < k - turn * K
            a = tl.load(a_at, (row < m)[:, None] & inside[None, :], 0.0)
            b = tl.load(b_at, inside[:, None] & (column < n)[None, :], 0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_at += (z * 0 + K) * a_step
        b_at += (z * 0 + K) * b_step
    out_at = out_ptr + z * m * n + row[:, None] * n + column[None, :]
    tl.store(out_at, total.to(out_ptr.dtype.element_ty), mask=(row < m)[:, None] & (column < n)[None, :])


@triton.jit
def _outer(
    a_ptr, b_ptr, out_ptr, m, n, k, a_batch, a_row, a_step, b_batch, b_step, b_column, tiles_m, tiles_n,
    M: tl.constexpr, N: tl.constexpr, COMPLEX: tl.constexpr,
):  # fmt: skip
    """Outer products in float64, one after the other. COMPLEX: pairs, whose strides count parts."""
    z, down, across = _tile(tiles_m, tiles_n, 8)
    row = (down * M + tl.arange(0, M)).to(tl.int64)
    column = (across * N + tl.arange(0, N)).to(tl.int64)
    a_at = a_ptr + z * a_batch + row * a_row
    b_at = b_ptr + z * b_batch + column * b_column
    real = tl.zeros((M, N), tl.float64)
    imaginary = tl.zeros((M, N), tl.float64)
    for _ in range(k):
        a = tl.load(a_at, mask=row < m, other=0.0).to(tl.float64)[:, None]
        b = tl.load(b_at, mask=column < n, other=0.0).to(tl.float64)[None, :]
        real += a * b
        if COMPLEX:
            ai = tl.load(a_at + 1, mask=row < m, other=0.0).to(tl.float64)[:, None]
            bi = tl.load(b_at + 1, mask=column < n, other=0.0).to(tl.float64)[None, :]
            real -= ai * bi
            imaginary += a * bi
            imaginary += ai * b
        a_at += a_step
        b_at += b_step
    at = z * m * n + row[:, None] * n + column[None, :]
    inside = (row < m)[:, None] & (column < n)[None, :]
    if COMPLEX:
        tl.store(out_ptr + 2 * at, real.to(out_ptr.dtype.element_ty), mask=inside)
        tl.store(out_ptr + 2 * at + 1, imaginary.to(out_ptr.dtype.element_ty), mask=inside)
    else:
        tl.store(out_ptr + at, real.to(out_ptr.dtype.element_ty), mask=inside)


def _tiling(dtype, z, m, n, k):
    """Tile of the result, step along k, warps and stages."""
    large = z * triton.cdiv(m, 128) * triton.cdiv(n, 128)
    if dtype == torch.float32:
        if min(m, n) >= 128 and large >= 200:
            return 128, 128, 16, 8, 3
        return (64, 64, 16, 4, 2) if min(m, n) >= 64 and z * m * n >= 1 << 20 else (32, 32, 32, 4, 2)
    if min(m, n) >= 128:
        return (128, 128, 64, 8, 2 if k <= 128 else 3) if large >= 132 else (64, 64, 64, 4, 4)
    if max(m, n) <= 16:
        return 16, 16, 64, 1, 2
    if min(m, n) <= 16:
        return (16, 64, 64, 4, 3) if m <= 16 else (64, 16, 64, 4, 3)
    return 64, 64, 32, 4, 3


def bmm(self, mat2):
    """A new row-major tensor."""
    a, b = self.resolve_conj(), mat2.resolve_conj()
    (z, m, k), n = a.shape, b.shape[2]
    out = torch.empty((z, m, n), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    if a.is_complex() or a.dtype == torch.float64:
        parts = [torch.view_as_real(each) if each.is_complex() else each for each in (a, b, out)]
        tiles = triton.cdiv(m, 32), triton.cdiv(n, 32)
        _outer[(z * tiles[0] * tiles[1],)](
            *parts, m, n, k, *parts[0].stride()[:3], *parts[1].stride()[:3], *tiles, M=32, N=32, COMPLEX=a.is_complex()
        )  # fmt: skip
        return out
    high, wide, step, warps, stages = _tiling(a.dtype, z, m, n, k)
    tiles = triton.cdiv(m, high), triton.cdiv(n, wide)
    _dot[(z * tiles[0] * tiles[1],)](
        a, b, out, m, n, k, triton.cdiv(k, step), *a.stride(), *b.stride(), *tiles, M=high, N=wide, K=step,
        WHOLE=m % high == 0 and n % wide == 0, WHOLE_K=k % step == 0, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out
