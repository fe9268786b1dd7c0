"""ggml_moe_a8: tokens times the quantized matrices of their experts, decoded from GGML's block formats.

Tokens come sorted by expert, in blocks of four; a program looks for its tile of blocks of one expert and has some rows.
Q4_K and Q8_0 are read as words and go through the depth by 64 and 128, other formats by 256, a block or eight of them.
Weights may lie beyond the range of float16, so that all is multiplied as bfloat16.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _byte(ptr):
    return tl.load(ptr).to(tl.int32)


@triton.jit
def _float16(ptr):
    """The float16 at pointers to bytes."""
    return tl.load(ptr.to(tl.pointer_type(tl.float16))).to(tl.float32)


@triton.jit
def _low_float16(word):
    return word.to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def _small(ptr, TYPE: tl.constexpr):
    """(rows, 32): the weights of blocks of 32 that begin at ptr (rows,)."""
    i = tl.arange(0, 32)[None, :]
    scale = _float16(ptr)[:, None]
    # Q4_1 and Q5_1 have a minimum behind the scale; Q5_0 and Q5_1 then 32 high bits.
    minimum: tl.constexpr = 2 if TYPE == 3 or TYPE == 7 else 0
    high: tl.constexpr = 4 if TYPE == 6 or TYPE == 7 else 0
    code = (_byte(ptr[:, None] + (2 + minimum + high) + i % 16) >> (4 * (i // 16))) & 15
    if high > 0:
        code = code | (((_byte(ptr[:, None] + (2 + minimum) + i // 8) >> (i % 8)) & 1) << 4)
    if minimum > 0:
        return scale * code.to(tl.float32) + _float16(ptr + 2)[:, None]
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
        code = (_byte(at + (48 + 32 * (RUN // 2)) + i) >> (4 * (RUN % 2))) & 15
        code = code | (((_byte(at + 16 + i) >> RUN) & 1) << 4)
        least = (least * minimum.to(tl.float32))[:, None]
        return (scale * own.to(tl.float32))[:, None] * code.to(tl.float32) - least


@triton.jit
def _any(total, ptr, x_at, real, depth, TYPE: tl.constexpr):
    """``total`` (rows, tokens) and the products; ptr (rows,): where rows of W begin, x_at (tokens, 1): those of X."""
    small: tl.constexpr = 18 if TYPE == 2 else 20 if TYPE == 3 else 22 if TYPE == 6 else 24
    step: tl.constexpr = 84 if TYPE == 10 else 110 if TYPE == 11 else 176 if TYPE == 13 else 210
    # Where the scale of a block lies, behind it its factor of the minima, if it has one.
    scale_at: tl.constexpr = 80 if TYPE == 10 else 108 if TYPE == 11 else 208 if TYPE == 14 else 0
    x_at += tl.arange(0, 32)[None, :]
    for block in range(depth // 256):
        if TYPE >= 10:
            at = ptr + block * step
            scale = _float16(at + scale_at)
            least = scale if TYPE == 11 or TYPE == 14 else _float16(at + (scale_at + 2))
        for run in tl.static_range(8):
            if TYPE >= 10:
                weight = _large(at, scale, least, run, TYPE)
            else:
                weight = _small(ptr + block * (8 * small) + small * run, TYPE)
            x = tl.load(x_at + block * 256 + 32 * run, mask=real, other=0.0)
            total = tl.dot(weight.to(tl.bfloat16), tl.trans(x), total)
    return total


@triton.jit
def _q4_k(total, ptr, x_at, real, depth):
    """As above. A step takes 64 columns, of which 32 have the low nibbles of 32 bytes, 32 the high ones."""
    words = ptr.to(tl.pointer_type(tl.int32))
    code_at = ptr[:, None] + (16 + tl.arange(0, 32))[None, :]
    x_at += tl.arange(0, 64)[None, :]
    for step in range(depth // 64):
        block = step // 4
        quarter = step % 4
        x = tl.load(x_at + step * 64, mask=real, other=0.0)
        code = tl.load(code_at + (block * 144 + quarter * 32))
        both = tl.load(words + block * 36)
        # Three words have the scales and minima of the eight runs of 32; half of each belongs to this quarter.
        half = 16 * (quarter % 2)
        word0 = tl.load(words + (block * 36 + 1)) >> half
        word1 = tl.load(words + (block * 36 + 2)) >> half
        word2 = tl.load(words + (block * 36 + 3)) >> half
        first = quarter < 2
        scale0 = tl.where(first, word0 & 63, (word2 & 15) | ((word0 >> 2) & 48))
        scale1 = tl.where(first, (word0 >> 8) & 63, ((word2 >> 8) & 15) | ((word0 >> 10) & 48))
        least0 = tl.where(first, word1 & 63, ((word2 >> 4) & 15) | ((word1 >> 2) & 48))
        least1 = tl.where(first, (word1 >> 8) & 63, ((word2 >> 12) & 15) | ((word1 >> 10) & 48))
        scale, least = _low_float16(both), _low_float16(both >> 16)
        scale0, scale1 = scale * scale0.to(tl.float32), scale * scale1.to(tl.float32)
        least0, least1 = least * least0.to(tl.float32), least * least1.to(tl.float32)
        low = (code & 15).to(tl.float32) * scale0[:, None] - least0[:, None]
        high = (code >> 4).to(tl.float32) * scale1[:, None] - least1[:, None]
        weight = tl.permute(tl.join(low.to(tl.bfloat16), high.to(tl.bfloat16)), (0, 2, 1))
        total = tl.dot(tl.reshape(weight, [total.shape[0], 64]), tl.trans(x), total)
    return total


@triton.jit
def _scaled_bytes(word, scale):
    """(rows, 64): the signed bytes of words (rows, 16) times the scales (rows, 2) of either half."""
    rows: tl.constexpr = word.shape[0]
    even, odd = tl.join((word << 24) >> 24, (word << 8) >> 24), tl.join((word << 16) >> 24, word >> 24)
    weight = tl.reshape(tl.join(even, odd), [rows, 2, 32]).to(tl.float32) * scale[:, :, None]
    return tl.reshape(weight.to(tl.bfloat16), [rows, 64])


@triton.jit
def _q8_0(total, ptr, x_at, real, depth):
    """As above. Two blocks are 17 words: a scale, 16 words of codes half a word off, a scale, 16 halves of words."""
    words = ptr.to(tl.pointer_type(tl.int32))[:, None]
    i = tl.arange(0, 16)
    code_at = words + ((i // 8) * 17 + i % 8)[None, :]
    scale_at = words + (tl.arange(0, 2) * 17)[None, :]
    i = tl.arange(0, 64)
    x_at += ((i // 32) * 64 + i % 32)[None, :]
    for step in range(depth // 128):
        x0 = tl.load(x_at + step * 128, mask=real, other=0.0)
        x1 = tl.load(x_at + step * 128 + 32, mask=real, other=0.0)
        left = tl.load(code_at + step * 34)
        right = tl.load(code_at + (step * 34 + 1))
        code1 = tl.load(code_at + (step * 34 + 9))
        scale0 = _low_float16(tl.load(scale_at + step * 34))
        scale1 = _low_float16(tl.load(scale_at + (step * 34 + 8)) >> 16)
        code0 = ((left >> 16) & 65535) | (right << 16)
        total = tl.dot(_scaled_bytes(code0, scale0), tl.trans(x0), total)
        total = tl.dot(_scaled_bytes(code1, scale1), tl.trans(x1), total)
    return total


@triton.jit
def _later(a, b):
    return tl.maximum(a, b)


@triton.jit
def _tile(expert_ptr, blocks, which, LOOK: tl.constexpr, MOST: tl.constexpr):
    """First block (-1: none), expert and number of blocks of a tile, at most MOST of one expert. LOOK: no fewer than
    all blocks; 0: every block is a tile.
    """
    if LOOK == 0:
        return tl.where(which < blocks, which, -1), tl.load(expert_ptr + which), 1
    else:
        i = tl.arange(0, LOOK)
        inside = i < blocks
        expert = tl.load(expert_ptr + i, mask=inside, other=-1)
        before = tl.load(expert_ptr + i - 1, mask=inside & (i > 0), other=-1)
        new = (i == 0) | (expert != before)
        start = tl.associative_scan(tl.where(new & inside, i, 0), 0, _later)
        begins = inside & ((i - start) % MOST == 0)
        number = tl.cumsum(begins.to(tl.int32), 0) - 1
        first = tl.max(tl.where(begins & (number == which), i, -1), axis=0)
        own = tl.max(tl.where(i == first, expert, -1), axis=0)
        count = tl.sum((inside & (i >= first) & (i < first + MOST) & (expert == own)).to(tl.int32), axis=0)
        return first, own, count


@triton.jit
def _multiply(
    weight_ptr, x_ptr, out_ptr, id_ptr, expert_ptr, padded_ptr, rows, depth, row_bytes, expert_bytes, across, ids, topk,
    TYPE: tl.constexpr, LOOK: tl.constexpr, TOKENS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """A tile of ids and ROWS rows. TOKENS: no fewer than ids of a tile."""
    which = tl.program_id(0) // across
    first, expert, count = _tile(expert_ptr, tl.load(padded_ptr) // 4, which, LOOK, TOKENS // 4)
    if first >= 0:
        i = tl.arange(0, TOKENS)
        id = tl.load(id_ptr + first * 4 + i, mask=i < count * 4, other=ids)
        real = id < ids
        token = tl.where(real, id // topk, 0)
        row = tl.program_id(0) % across * ROWS + tl.arange(0, ROWS)
        ptr = weight_ptr + expert.to(tl.int64) * expert_bytes + tl.minimum(row, rows - 1).to(tl.int64) * row_bytes
        x_at = x_ptr + (token.to(tl.int64) * depth)[:, None]
        total = tl.zeros([ROWS, TOKENS], dtype=tl.float32)
        if TYPE == 12:
            total = _q4_k(total, ptr, x_at, real[:, None], depth)
        elif TYPE == 8:
            total = _q8_0(total, ptr, x_at, real[:, None], depth)
        else:
            total = _any(total, ptr, x_at, real[:, None], depth, TYPE)
        out = out_ptr + (id.to(tl.int64) * rows)[None, :] + row[:, None]
        tl.store(out, total.to(out_ptr.dtype.element_ty), mask=real[None, :] & (row < rows)[:, None])


def ggml_moe_a8(X, W, sorted_token_ids, expert_ids, num_tokens_post_padded, type, row, top_k, tokens):
    """X: (tokens, depth); W: uint8 (experts, row, bytes); expert_ids: one for each four of sorted_token_ids.

    Returns (tokens * top_k, row) of X's dtype. Ids from tokens * top_k on are padding.
    """
    ids = tokens * top_k
    out = torch.empty((ids, row), dtype=X.dtype, device=X.device)
    experts, blocks = W.shape[0], expert_ids.shape[0]
    if out.numel() == 0 or blocks == 0:
        return out
    if W.data_ptr() % 4 != 0:
        # It is read as words and as float16.
        W = W.clone()
    quick, usual = type in (8, 12), triton.cdiv(4 * blocks, experts)
    height = max(16, min(128 if quick else 64, triton.next_power_of_2(usual + usual // 4)))
    # Each program looks at all blocks; where they are very many, a tile has but one.
    look, tiles = max(16, triton.next_power_of_2(blocks)), triton.cdiv(blocks, height // 4) + min(experts, blocks)
    if blocks > 8192:
        height, look, tiles = 16, 0, blocks
    width, warps = (128, 8) if row >= 2048 else (64, 4)
    across = triton.cdiv(row, width)
    # With 128 registers a thread two programs of 8 warps fit on a multiprocessor.
    _multiply[(tiles * across,)](
        W, X.to(torch.bfloat16), out, sorted_token_ids, expert_ids, num_tokens_post_padded, row, X.shape[1], W.shape[2],
        W.stride(0), across, ids, top_k, TYPE=type, LOOK=look, TOKENS=height, ROWS=width,
        num_warps=warps, num_stages=3 if quick else 2, maxnreg=128 if type == 12 else None,
    )  # fmt: skip
    return out
