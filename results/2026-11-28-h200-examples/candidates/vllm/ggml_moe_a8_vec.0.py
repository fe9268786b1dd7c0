"""ggml_moe_a8_vec: each token's row times the quantized matrices of its experts, summed in float32.

Weights are in one of GGML's block formats and are decoded as they are multiplied, byte by byte, since blocks of 18 or
110 bytes are aligned to nothing. A program has some rows of one matrix and goes through runs of 32 columns.
"""

import torch
import triton
import triton.language as tl

_BLOCKS = {
    2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 20: (32, 18),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 23: (256, 136),
}  # fmt: skip
"""Weights and bytes of a block, by GGML's number of the format."""


@triton.jit
def _byte(ptr):
    return tl.load(ptr).to(tl.int32)


@triton.jit
def _float16(ptr):
    return (_byte(ptr) | (_byte(ptr + 1) << 8)).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def _signed(byte):
    return ((byte ^ 0x80) - 0x80).to(tl.float32)


@triton.jit
def _nonlinear(code):
    """The weight of IQ4's code: 16 signed bytes, four to a word."""
    low = tl.where(code < 4, -1079142271, -152379953)
    word = tl.where(code < 8, low, tl.where(code < 12, 639175937, 1901675829))
    return _signed((word >> ((code & 3) * 8)) & 0xFF)


@triton.jit
def _small(at, half, i, TYPE: tl.constexpr):
    """Weight 16 * half + i of blocks of 32 weights."""
    scale = _float16(at)
    if TYPE == 8:
        return scale * _signed(_byte(at + 2 + 16 * half + i))
    else:
        # Q4_1 and Q5_1 have a minimum behind the scale; Q5_0 and Q5_1 then 32 high bits.
        minimum: tl.constexpr = 2 if TYPE == 3 or TYPE == 7 else 0
        high: tl.constexpr = 4 if TYPE == 6 or TYPE == 7 else 0
        code = (_byte(at + 2 + minimum + high + i) >> (4 * half)) & 15
        if high > 0:
            place = 16 * half + i
            code = code | (((_byte(at + 2 + minimum + place // 8) >> (place % 8)) & 1) << 4)
        if minimum > 0:
            return scale * code.to(tl.float32) + _float16(at + 2)
        elif TYPE == 20:
            return scale * _nonlinear(code)
        else:
            return scale * (code - (16 if high > 0 else 8)).to(tl.float32)


@triton.jit
def _large(at, run, half, i, TYPE: tl.constexpr):
    """Weight 32 * run + 16 * half + i of blocks of 256 weights."""
    place = 16 * half + i
    upper, quarter = run // 4, run % 4
    if TYPE == 10:
        code = (_byte(at + 16 + 32 * upper + place) >> (2 * quarter)) & 3
        scales = _byte(at + 2 * run + half)
        scale = _float16(at + 80) * (scales & 15).to(tl.float32)
        return scale * code.to(tl.float32) - _float16(at + 82) * (scales >> 4).to(tl.float32)
    elif TYPE == 11:
        code = (_byte(at + 32 + 32 * upper + place) >> (2 * quarter)) & 3
        code = code | (((_byte(at + place) >> run) & 1) << 2)
        group = 2 * run + half
        low = (_byte(at + 96 + (group & 7)) >> (4 * (group // 8))) & 15
        high = (_byte(at + 104 + (group & 3)) >> (2 * (group // 4))) & 3
        scale = _float16(at + 108) * ((low | (high << 4)) - 32).to(tl.float32)
        return scale * (code - 4).to(tl.float32)
    elif TYPE == 12 or TYPE == 13:
        # Scales and minima of 6 bits: those of runs 4 to 7 have their two high bits in the bytes of runs 0 to 3.
        first, second = _byte(at + 4 + (run & 3)), _byte(at + 8 + (run & 3))
        third = _byte(at + 12 + (run & 3))
        scale = tl.where(run < 4, first & 63, (third & 15) | ((first >> 6) << 4))
        minimum = tl.where(run < 4, second & 63, (third >> 4) | ((second >> 6) << 4))
        codes: tl.constexpr = 16 if TYPE == 12 else 48
        code = (_byte(at + codes + 32 * (run // 2) + place) >> (4 * (run % 2))) & 15
        if TYPE == 13:
            code = code | (((_byte(at + 16 + place) >> run) & 1) << 4)
        scaled = (_float16(at) * scale.to(tl.float32)) * code.to(tl.float32)
        return scaled - _float16(at + 2) * minimum.to(tl.float32)
    elif TYPE == 14:
        code = (_byte(at + 64 * upper + 32 * (quarter % 2) + place) >> (4 * (quarter // 2))) & 15
        code = code | (((_byte(at + 128 + 32 * upper + place) >> (2 * quarter)) & 3) << 4)
        scale = _float16(at + 208) * _signed(_byte(at + 192 + 2 * run + half))
        return scale * (code - 32).to(tl.float32)
    else:
        low = (_byte(at + 4 + run // 2) >> (4 * (run % 2))) & 15
        high = (_byte(at + 2 + run // 4) >> (2 * (run % 4))) & 3
        scale = _float16(at) * ((low | (high << 4)) - 32).to(tl.float32)
        return scale * _nonlinear((_byte(at + 8 + 16 * run + i) >> (4 * half)) & 15)


@triton.jit
def _multiply(
    weight_ptr, x_ptr, expert_ptr, out_ptr, rows, depth, topk, row_bytes,
    TYPE: tl.constexpr, PER_BLOCK: tl.constexpr, BYTES: tl.constexpr, ROWS: tl.constexpr, RUNS: tl.constexpr,
):  # fmt: skip
    """ROWS elements of one row of the result; a block has PER_BLOCK runs and BYTES bytes."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    tiles = (rows - 1) // ROWS + 1
    vector = tl.program_id(0) // tiles
    row = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    read = tl.minimum(row, rows - 1).to(tl.int64)
    read += tl.load(expert_ptr + vector).to(tl.int64) * rows
    x_ptr += (vector // topk).to(tl.int64) * depth
    runs = depth // 32
    half = tl.arange(0, 2)[:, None]
    i = tl.arange(0, 16)[None, :]
    total = tl.zeros([ROWS], tl.float32)
    for start in range(0, runs, RUNS):
        run = start + tl.arange(0, RUNS)
        real = tl.minimum(run, runs - 1)
        x_at = x_ptr + (real * 32)[:, None, None] + (16 * half + i)[None, :, :]
        x = tl.load(x_at, mask=(run < runs)[:, None, None], other=0.0).to(tl.float32)
        block = (read * row_bytes)[:, None] + (real // PER_BLOCK * BYTES)[None, :]
        at = weight_ptr + block[:, :, None, None]
        if PER_BLOCK == 1:
            weight = _small(at, half[None, None, :, :], i[None, None, :, :], TYPE)
        else:
            part = (real % PER_BLOCK)[None, :, None, None]
            weight = _large(at, part, half[None, None, :, :], i[None, None, :, :], TYPE)
        total += tl.sum(tl.sum(tl.sum(weight * x[None, :, :, :], axis=3), axis=2), axis=1)
    tl.store(out_ptr + vector.to(tl.int64) * rows + row, total.to(out_ptr.dtype.element_ty), mask=row < rows)


def ggml_moe_a8_vec(X, W, topk_ids, top_k, type, row, tokens):
    """X: (tokens, depth); W: uint8 (experts, row, bytes); topk_ids: (tokens, top_k). Returns (tokens * top_k, row)."""
    vectors, rows, depth = int(tokens) * int(top_k), int(row), X.shape[1]
    operands = (W.contiguous(), X.contiguous(), topk_ids.contiguous())
    sizes = (rows, depth, int(top_k))
    out = torch.empty((vectors, rows), dtype=X.dtype, device=X.device)
    if out.numel() == 0:
        return out
    if depth == 0:
        return out.fill_(0)
    weights, block_bytes = _BLOCKS[int(type)]
    runs = 32 if depth > 512 else 16
    _multiply[(triton.cdiv(rows, 4) * vectors,)](
        *operands, out, *sizes, depth // weights * block_bytes,
        TYPE=int(type), PER_BLOCK=weights // 32, BYTES=block_bytes, ROWS=4, RUNS=runs, num_warps=4,
    )  # fmt: skip
    return out
