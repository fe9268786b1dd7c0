"""ggml_moe_a8_vec: each token's row times the quantized matrices of its experts, summed in float32.

Weights are in one of GGML's block formats and are decoded as they are multiplied, byte by byte, since blocks of 18 or
110 bytes are aligned to nothing. A program has some rows of one matrix and goes through runs of 32 columns.

Q4_K and Q8_0 (12 and 8) go to the tensor cores, in words of 32 bits. Activations are first rounded to two signed bytes,
x = step * (first + second / 254) with a step for each run. The right factor of a block's product has a column for each
of its 8 runs and 2 bytes, with zeros where other runs are: so the runs' integer sums come apart, to be scaled.
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


@triton.jit
def _round(x_ptr, code_ptr, step_ptr, sum_ptr):
    """Eight runs: first and second bytes of all, steps, and sums."""
    block = tl.program_id(0).to(tl.int64)
    run = tl.arange(0, 8)
    place = run[:, None] * 32 + tl.arange(0, 32)[None, :]
    x = tl.load(x_ptr + block * 256 + place).to(tl.float32)
    step = tl.max(tl.abs(x), axis=1) * (1.0 / 127.0)
    codes = x * tl.where(step > 0.0, 1.0 / tl.where(step > 0.0, step, 1.0), 0.0)[:, None]
    first = tl.minimum(tl.maximum(tl.floor(codes + 0.5), -127.0), 127.0)
    second = tl.minimum(tl.maximum(tl.floor((codes - first) * 254.0 + 0.5), -127.0), 127.0)
    tl.store(code_ptr + block * 512 + place, first.to(tl.int32).to(tl.int8))
    tl.store(code_ptr + block * 512 + 256 + place, second.to(tl.int32).to(tl.int8))
    tl.store(step_ptr + block * 8 + run, step)
    tl.store(sum_ptr + block * 8 + run, tl.sum(x, axis=1))


@triton.jit
def _bytes(word, ROWS: tl.constexpr):
    """(ROWS, 32) words as (ROWS, 128) signed bytes."""
    even = tl.join(word.to(tl.int8), (word >> 16).to(tl.int8))
    odd = tl.join((word >> 8).to(tl.int8), (word >> 24).to(tl.int8))
    return tl.reshape(tl.join(even, odd), [ROWS, 128])


@triton.jit
def _lower(word):
    return word.to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit(do_not_specialize=["rows", "topk", "blocks", "tiles"])
def _multiply_blocks(
    word_ptr, code_ptr, step_ptr, sum_ptr, expert_ptr, out_ptr, rows, topk, blocks, tiles,
    TYPE: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """ROWS elements of one row of the result, by blocks of 256 columns."""
    WORDS: tl.constexpr = 36 if TYPE == 12 else 68
    vector = tl.program_id(0) // tiles
    row = (tl.program_id(0) - vector * tiles) * ROWS + tl.arange(0, ROWS)
    read = tl.minimum(row, rows - 1).to(tl.int64) + tl.load(expert_ptr + vector).to(tl.int64) * rows
    token = (vector // topk).to(tl.int64) * blocks
    word_ptr += read * blocks * WORDS
    i = tl.arange(0, 32)
    run = tl.arange(0, 8)
    # Of runs 0, 2, 4 and 6; those of 1, 3, 5 and 7 lie 32 bytes on.
    column, k = tl.arange(0, 16)[:, None], tl.arange(0, 128)[None, :]
    codes = code_ptr + token * 512 + (column // 8 * 256 + k // 32 * 64 + k % 32)
    even, odd = column % 8 == k // 32 * 2, column % 8 == k // 32 * 2 + 1
    weight = tl.where(tl.arange(0, 2) == 0, 1.0, 1.0 / 254.0)[None, :, None]
    total = tl.zeros([ROWS, 8], tl.float32)
    for block in tl.range(0, blocks, num_stages=STAGES):
        head = word_ptr + block * WORDS
        if TYPE == 12:
            word = tl.load(head[:, None] + (4 + i)[None, :])
            low, high = word & 0x0F0F0F0F, (word >> 4) & 0x0F0F0F0F
        else:
            # Two runs have 17 words: 16 bits of scale, the codes half a word off, and the same again, aligned.
            at = head[:, None] + (i // 8 * 17 + i % 8)[None, :]
            low = ((tl.load(at) >> 16) & 0xFFFF) | (tl.load(at + 1) << 16)
            high = tl.load(at + 9)
        x_even = tl.load(codes + block * 512, mask=even, other=0)
        x_odd = tl.load(codes + block * 512 + 32, mask=odd, other=0)
        product = tl.dot(_bytes(low, ROWS), tl.trans(x_even), out_dtype=tl.int32)
        product = tl.dot(_bytes(high, ROWS), tl.trans(x_odd), product, out_dtype=tl.int32)
        sums = tl.sum(tl.reshape(product.to(tl.float32), [ROWS, 2, 8]) * weight, axis=1)
        sums *= tl.load(step_ptr + (token + block) * 8 + run)[None, :]
        if TYPE == 12:
            both = tl.load(head)
            shift = (run % 4 * 8)[None, :]
            first, second = tl.load(head + 1)[:, None] >> shift, tl.load(head + 2)[:, None] >> shift
            third = tl.load(head + 3)[:, None] >> shift
            lower = (run < 4)[None, :]
            scale = tl.where(lower, first & 63, (third & 15) | ((first >> 2) & 48)).to(tl.float32)
            minimum = tl.where(lower, second & 63, ((third >> 4) & 15) | ((second >> 2) & 48)).to(tl.float32)
            of_x = tl.load(sum_ptr + (token + block) * 8 + run)[None, :]
            total += _lower(both)[:, None] * (scale * sums) - _lower(both >> 16)[:, None] * (minimum * of_x)
        else:
            scale = tl.load(head[:, None] + (run // 2 * 17 + run % 2 * 8)[None, :]) >> (run % 2 * 16)[None, :]
            total += _lower(scale) * sums
    out = out_ptr + vector.to(tl.int64) * rows + row
    tl.store(out, tl.sum(total, axis=1).to(out_ptr.dtype.element_ty), mask=row < rows)


def _by_tensor_cores(weights, x, experts, out, type, vectors, rows, depth, topk):
    """Whether this was done: it takes whole blocks of 256 and X in 16 bits."""
    aligned = weights.data_ptr() % 16 == 0 and weights.storage_offset() % 4 == 0
    if type not in (8, 12) or depth % 256 or depth >= 1 << 30 or x.element_size() != 2 or not aligned:
        return False
    codes = torch.empty(2 * x.numel(), dtype=torch.int8, device=x.device)
    steps, sums = (torch.empty(x.numel() // 32, dtype=torch.float32, device=x.device) for _ in range(2))
    _round[(x.numel() // 256,)](x, codes, steps, sums, num_warps=1)
    tiles = triton.cdiv(rows, 64)
    _multiply_blocks[(tiles * vectors,)](
        weights.view(-1).view(torch.int32), codes, steps, sums, experts, out, rows, topk, depth // 256, tiles,
        TYPE=type, ROWS=64, STAGES=4 if type == 12 else 3, num_warps=4,
    )  # fmt: skip
    return True


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
    if _by_tensor_cores(*operands, out, int(type), vectors, *sizes):
        return out
    weights, block_bytes = _BLOCKS[int(type)]
    runs = 32 if depth > 512 else 16
    _multiply[(triton.cdiv(rows, 4) * vectors,)](
        *operands, out, *sizes, depth // weights * block_bytes,
        TYPE=int(type), PER_BLOCK=weights // 32, BYTES=block_bytes, ROWS=4, RUNS=runs, num_warps=4,
    )  # fmt: skip
    return out
