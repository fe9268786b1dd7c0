"""ggml_mul_mat_a8: X times a quantized matrix on tensor cores, its weights decoded from GGML's block formats.

A program has a tile of the result and goes through the depth by steps of 256, which is a block or eight of them. Where
there are too few tiles, the depth is cut into parts, which a second kernel adds up. Weights may lie beyond the range of
float16, so that float16 is multiplied as bfloat16.
"""

import torch
import triton
import triton.language as tl

_STEP_BYTES = {2: 144, 3: 160, 6: 176, 7: 192, 8: 272, 10: 84, 11: 110, 12: 144, 13: 176, 14: 210}
"""Bytes of 256 weights, by GGML's number of the format."""


@triton.jit
def _byte(ptr):
    return tl.load(ptr).to(tl.int32)


@triton.jit
def _float16(ptr, ALIGNED: tl.constexpr):
    """The float16 at pointers to bytes, ALIGNED: to two of them."""
    if ALIGNED:
        return tl.load(ptr.to(tl.pointer_type(tl.float16))).to(tl.float32)
    else:
        return (_byte(ptr) | (_byte(ptr + 1) << 8)).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def _small(ptr, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """(rows, 32): the weights of blocks of 32 that begin at ptr (rows,)."""
    i = tl.arange(0, 32)[None, :]
    scale = _float16(ptr, ALIGNED)[:, None]
    if TYPE == 8:
        return scale * tl.load(ptr[:, None] + 2 + i).to(tl.int8, bitcast=True).to(tl.float32)
    else:
        # Q4_1 and Q5_1 have a minimum behind the scale; Q5_0 and Q5_1 then 32 high bits.
        minimum: tl.constexpr = 2 if TYPE == 3 or TYPE == 7 else 0
        high: tl.constexpr = 4 if TYPE == 6 or TYPE == 7 else 0
        code = (_byte(ptr[:, None] + (2 + minimum + high) + i % 16) >> (4 * (i // 16))) & 15
        if high > 0:
            first = ptr + (2 + minimum)
            bits = _byte(first) | (_byte(first + 1) << 8) | (_byte(first + 2) << 16) | (_byte(first + 3) << 24)
            code = code | (((bits[:, None] >> i) & 1) << 4)
        if minimum > 0:
            return scale * code.to(tl.float32) + _float16(ptr + 2, ALIGNED)[:, None]
        else:
            return scale * (code - (16 if high > 0 else 8)).to(tl.float32)


@triton.jit
def _large(ptr, scale, least, RUN: tl.constexpr, TYPE: tl.constexpr):
    """(rows, 32): weights 32 * RUN to 32 * RUN + 31 of blocks of 256; scale, least: (rows,), of the whole block."""
    i = tl.arange(0, 32)[None, :]
    at = ptr[:, None]
    upper: tl.constexpr = RUN // 4
    quarter: tl.constexpr = RUN % 4
    if TYPE == 10:
        code = (_byte(at + (16 + 32 * upper) + i) >> (2 * quarter)) & 3
        scales = _byte(at + 2 * RUN + i // 16)
        scaled = (scale[:, None] * (scales & 15).to(tl.float32)) * code.to(tl.float32)
        return scaled - least[:, None] * (scales >> 4).to(tl.float32)
    elif TYPE == 11:
        code = (_byte(at + (32 + 32 * upper) + i) >> (2 * quarter)) & 3
        code = code | (((_byte(at + i) >> RUN) & 1) << 2)
        low = (_byte(at + (96 + 2 * (RUN % 4)) + i // 16) >> (4 * upper)) & 15
        high = (_byte(at + (104 + 2 * (RUN % 2)) + i // 16) >> (2 * (RUN // 2))) & 3
        return (scale[:, None] * ((low | (high << 4)) - 32).to(tl.float32)) * (code - 4).to(tl.float32)
    elif TYPE == 14:
        code = (_byte(at + (64 * upper + 32 * (quarter % 2)) + i) >> (4 * (quarter // 2))) & 15
        code = code | (((_byte(at + (128 + 32 * upper) + i) >> (2 * quarter)) & 3) << 4)
        own = tl.load(at + (192 + 2 * RUN) + i // 16).to(tl.int8, bitcast=True)
        return (scale[:, None] * own.to(tl.float32)) * (code - 32).to(tl.float32)
    else:
        # Scales and minima of 6 bits: those of runs 4 to 7 have their two high bits in the bytes of runs 0 to 3.
        if RUN < 4:
            own = _byte(ptr + (4 + RUN)) & 63
            minimum = _byte(ptr + (8 + RUN)) & 63
        else:
            both = _byte(ptr + (8 + RUN))
            own = (both & 15) | ((_byte(ptr + RUN) >> 6) << 4)
            minimum = (both >> 4) | ((_byte(ptr + (4 + RUN)) >> 6) << 4)
        codes: tl.constexpr = 16 if TYPE == 12 else 48
        code = (_byte(at + (codes + 32 * (RUN // 2)) + i) >> (4 * (RUN % 2))) & 15
        if TYPE == 13:
            code = code | (((_byte(at + 16 + i) >> RUN) & 1) << 4)
        least = (least * minimum.to(tl.float32))[:, None]
        return (scale * own.to(tl.float32))[:, None] * code.to(tl.float32) - least


@triton.jit
def _add_products(total, ptr, x_at, inside, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """total (rows of W, rows of X) and the products of 256 columns; x_at: where the first 32 of X lie."""
    scale = total
    least = total
    if TYPE >= 10:
        # Where the scale of a block lies, and its factor of the minima, if it has one.
        at: tl.constexpr = 80 if TYPE == 10 else 108 if TYPE == 11 else 208 if TYPE == 14 else 0
        scale = _float16(ptr + at, ALIGNED)
        least = scale if TYPE == 11 or TYPE == 14 else _float16(ptr + (at + 2), ALIGNED)
    small: tl.constexpr = 18 if TYPE == 2 else 20 if TYPE == 3 else 22 if TYPE == 6 else 24 if TYPE == 7 else 34
    for run in tl.static_range(8):
        weight = _large(ptr, scale, least, run, TYPE) if TYPE >= 10 else _small(ptr + small * run, TYPE, ALIGNED)
        x = tl.load(x_at + 32 * run, mask=inside, other=0.0)
        if x.dtype.is_fp32():
            total = tl.dot(weight, tl.trans(x), total, input_precision="tf32")
        else:
            total = tl.dot(weight.to(x.dtype), tl.trans(x), total)
    return total


@triton.jit
def _multiply(
    weight_ptr, x_ptr, out_ptr, rows, batch, depth, row_bytes, step_bytes, steps, part, down, across,
    TYPE: tl.constexpr, ALIGNED: tl.constexpr, BATCH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """A tile of one part's sums: ROWS rows of W, BATCH of X, ``part`` steps."""
    tile_batch, rest = tl.program_id(0) % down, tl.program_id(0) // down
    share = rest // across
    row = rest % across * ROWS + tl.arange(0, ROWS)
    vector = tile_batch * BATCH + tl.arange(0, BATCH)
    ptr = weight_ptr + tl.minimum(row, rows - 1).to(tl.int64) * row_bytes
    x_at = x_ptr + (vector.to(tl.int64) * depth)[:, None] + tl.arange(0, 32)[None, :]
    total = tl.zeros([ROWS, BATCH], dtype=tl.float32)
    for step in range(share * part, tl.minimum(share * part + part, steps)):
        here = (vector < batch)[:, None]
        total = _add_products(total, ptr + step * step_bytes, x_at + step * 256, here, TYPE, ALIGNED)
    out = out_ptr + (share.to(tl.int64) * batch + vector.to(tl.int64))[None, :] * rows + row[:, None]
    tl.store(out, total.to(out_ptr.dtype.element_ty), mask=(vector < batch)[None, :] & (row < rows)[:, None])


@triton.jit
def _add_parts(part_ptr, out_ptr, n, parts, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for part in range(parts):
        total += tl.load(part_ptr + part.to(tl.int64) * n + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=i < n)


def ggml_mul_mat_a8(W, X, type, row):
    """W: uint8 (row, bytes); X: (batch, depth), depth a multiple of 256. Returns (batch, row) of X's dtype."""
    (batch, depth), rows = X.shape, int(row)
    out = torch.empty((batch, rows), dtype=X.dtype, device=X.device)
    if out.numel() == 0:
        return out
    if X.dtype == torch.float16:
        X = X.to(torch.bfloat16)
    height = max(16, min(32 if X.dtype == torch.float32 else 128, triton.next_power_of_2(batch)))
    width, warps = (64, 4) if height <= 32 else (128, 8)
    down, across, steps = triton.cdiv(batch, height), triton.cdiv(rows, width), depth // 256
    parts = max(1, min((132 if height >= 128 else 264) // (down * across), steps // 2))
    part = triton.cdiv(steps, parts) if steps else 1
    parts = max(1, triton.cdiv(steps, part))
    sums = torch.empty((parts, batch, rows), dtype=torch.float32, device=X.device) if parts > 1 else out
    _multiply[(down * across * parts,)](
        W, X, sums, rows, batch, depth, W.shape[1], _STEP_BYTES[int(type)], steps, part, down, across,
        TYPE=int(type), ALIGNED=W.data_ptr() % 2 == 0, BATCH=height, ROWS=width,
        num_warps=warps, num_stages=1 if X.dtype == torch.float32 else 2,
    )  # fmt: skip
    if parts > 1:
        _add_parts[(triton.cdiv(out.numel(), 1024),)](sums, out, out.numel(), parts, BLOCK=1024, num_warps=4)
    return out
