"""ggml_moe_a8: tokens times the quantized matrices of their experts, decoded from GGML's block formats.

Tokens come sorted by expert and padded; a program has a tile of them and of rows, and multiplies by each expert that
the tile has tokens of, in most cases one or two. It goes through the depth by steps of 256, a block or eight of them.
Weights may lie beyond the range of float16, so that float16 is multiplied as bfloat16.
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
            total = tl.dot(weight.to(tl.bfloat16), tl.trans(x.to(tl.bfloat16)), total)
    return total


@triton.jit
def _multiply(
    weight_ptr, x_ptr, out_ptr, id_ptr, expert_ptr, padded_ptr, rows, depth, row_bytes, step_bytes, expert_bytes, steps,
    across, ids, topk,
    TYPE: tl.constexpr, ALIGNED: tl.constexpr, TOKENS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """TOKENS of the sorted ids and ROWS rows; an expert's id stands for four places."""
    first = tl.program_id(0) // across * TOKENS
    padded = tl.load(padded_ptr)
    if first < padded:
        i = first + tl.arange(0, TOKENS)
        id = tl.load(id_ptr + i, mask=i < padded, other=ids)
        real = (i < padded) & (id < ids) & (id >= 0)
        expert = tl.load(expert_ptr + i // 4, mask=i < padded, other=0)
        token = tl.where(real, id // topk, 0)
        lowest = tl.min(tl.where(real, expert, 2147483647), axis=0)
        highest = tl.max(tl.where(real, expert, -1), axis=0)
        row = tl.program_id(0) % across * ROWS + tl.arange(0, ROWS)
        ptr = weight_ptr + tl.minimum(row, rows - 1).to(tl.int64) * row_bytes
        x_at = x_ptr + (token.to(tl.int64) * depth)[:, None] + tl.arange(0, 32)[None, :]
        total = tl.zeros([ROWS, TOKENS], dtype=tl.float32)
        for each in range(lowest, highest + 1):
            own = real & (expert == each)
            if tl.max(own.to(tl.int32), axis=0) > 0:
                matrix = ptr + each.to(tl.int64) * expert_bytes
                for step in range(steps):
                    at, here = matrix + step * step_bytes, own[:, None]
                    total = _add_products(total, at, x_at + step * 256, here, TYPE, ALIGNED)
        out = out_ptr + (id.to(tl.int64) * rows)[None, :] + row[:, None]
        tl.store(out, total.to(out_ptr.dtype.element_ty), mask=real[None, :] & (row < rows)[:, None])


def ggml_moe_a8(X, W, sorted_token_ids, expert_ids, num_tokens_post_padded, type, row, top_k, tokens):
    """X: (tokens, depth); W: uint8 (experts, row, bytes); expert_ids: one for each four of sorted_token_ids.

    Returns (tokens * top_k, row) of X's dtype. Ids from tokens * top_k on are padding.
    """
    rows, ids = int(row), int(tokens) * int(top_k)
    out = torch.empty((ids, rows), dtype=X.dtype, device=X.device)
    places = sorted_token_ids.shape[0]
    if out.numel() == 0 or places == 0:
        return out
    wide = X.dtype == torch.float32
    usual = triton.next_power_of_2(triton.cdiv(places, max(W.shape[0], 1)))
    height = max(16, min(32 if wide else 64, usual))
    width, warps = (128, 8) if rows >= 2048 else (64, 4)
    across = triton.cdiv(rows, width)
    _multiply[(triton.cdiv(places, height) * across,)](
        W, X, out, sorted_token_ids, expert_ids, num_tokens_post_padded, rows, X.shape[1], W.shape[2],
        _STEP_BYTES[int(type)], W.stride(0), X.shape[1] // 256, across, ids, int(top_k),
        TYPE=int(type), ALIGNED=W.data_ptr() % 2 == 0, TOKENS=height, ROWS=width,
        num_warps=warps, num_stages=1 if wide else 2,
    )  # fmt: skip
    return out
