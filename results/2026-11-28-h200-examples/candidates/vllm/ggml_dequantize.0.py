"""ggml_dequantize: weights in one of GGML's block formats (Q4_0 to Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS) as floats.

A block has 32 or 256 weights; each program decodes some runs of 32. Formats are read byte by byte, since blocks of 18
or 110 bytes are aligned to nothing.
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
def _dequantize(
    weight_ptr, out_ptr, total, TYPE: tl.constexpr, PER_BLOCK: tl.constexpr, BYTES: tl.constexpr, RUNS: tl.constexpr
):
    """RUNS of ``total`` runs of 32 weights; a block has PER_BLOCK runs and BYTES bytes."""
    run = tl.program_id(0).to(tl.int64) * RUNS + tl.arange(0, RUNS)
    read = tl.minimum(run, total - 1)
    at = weight_ptr + (read // PER_BLOCK * BYTES)[:, None, None]
    half = tl.arange(0, 2)[None, :, None]
    i = tl.arange(0, 16)[None, None, :]
    if PER_BLOCK == 1:
        weight = _small(at, half, i, TYPE)
    else:
        weight = _large(at, (read % PER_BLOCK).to(tl.int32)[:, None, None], half, i, TYPE)
    out = out_ptr + (run * 32)[:, None, None] + (16 * half + i)
    inside = (run < total)[:, None, None] & (16 * half + i < 32)
    tl.store(out, weight.to(out_ptr.dtype.element_ty), mask=inside)


def ggml_dequantize(W, type, m, n, dtype):
    """W: uint8, the blocks of an (m, n) matrix, row by row; returns it in ``dtype``, float16 where that is None."""
    out = torch.empty((m, n), dtype=torch.float16 if dtype is None else dtype, device=W.device)
    if m == 0 or n == 0:
        return out
    weights, block_bytes = _BLOCKS[int(type)]
    runs = m * n // 32
    _dequantize[(triton.cdiv(runs, 64),)](
        W.contiguous(), out, runs, TYPE=int(type), PER_BLOCK=weights // 32, BYTES=block_bytes, RUNS=64, num_warps=4
    )
    return out
