"""gptq_gemm: a times GPTQ's weights of 2, 3, 4 or 8 bits, with a scale and a zero point for each group of rows.

Exllama's words of 4 or 8 bits are decoded on the way: for one row of a by a vector times a matrix, for few on chip, as
operands of the tensor cores. For everything else the weights are written out as floats and multiplied then.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _place(rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Row and column of this program's tile, in bands of 8 rows: tiles of one time share operands in the cache."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (rows - 1) // ROWS + 1, (columns - 1) // COLUMNS + 1
    band = tl.program_id(0) // (8 * across)
    height = tl.minimum(down - band * 8, 8)
    rest = tl.program_id(0) - band * 8 * across
    return band * 8 + rest % height, rest // height


@triton.jit
def _multiply(
    a, b, out_ptr, rows, columns, depth,
    DESCRIBED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of a @ b, both dense; DESCRIBED: they are tensor descriptors, not pointers."""
    tile_row, tile_column = _place(rows, columns, ROWS, COLUMNS)
    row = tile_row * ROWS + tl.arange(0, ROWS)
    column = tile_column * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, depth, DEPTH):
        if DESCRIBED:
            left = a.load([tile_row * ROWS, start])
            right = b.load([start, tile_column * COLUMNS])
        else:
            k = start + tl.arange(0, DEPTH)
            left_at = a + (row.to(tl.int64) * depth)[:, None] + k[None, :]
            right_at = b + (k.to(tl.int64) * columns)[:, None] + column[None, :]
            left = tl.load(left_at, mask=(row < rows)[:, None] & (k < depth)[None, :], other=0.0)
            right = tl.load(right_at, mask=(k < depth)[:, None] & (column < columns)[None, :], other=0.0)
        total = tl.dot(left, right, total)
    at = out_ptr + (row.to(tl.int64) * columns)[:, None] + column[None, :]
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    tl.store(at, total.to(out_ptr.dtype.element_ty), mask=inside)


def _product(a, b, out):
    """out = a @ b, on a GPU by tensor descriptors, which the hardware copies without threads."""
    (rows, depth), columns = a.shape, b.shape[1]
    described = a.is_cuda and depth >= 64 and columns >= 64
    if described:
        if a.data_ptr() % 16 != 0:
            a = a.clone()
        height = 128
        width = 256 if triton.cdiv(rows, 128) * triton.cdiv(columns, 256) >= 120 else 128
        left = TensorDescriptor(a, [rows, depth], [depth, 1], [height, 64])
        right = TensorDescriptor(b, [depth, columns], [columns, 1], [64, width])
    else:
        height, width = 64 if rows > 32 else 16, 64
        left, right = a, b
    _multiply[(triton.cdiv(rows, height) * triton.cdiv(columns, width),)](
        left, right, out, rows, columns, depth, DESCRIBED=described,
        ROWS=height, COLUMNS=width, DEPTH=64, num_warps=8 if described else 4, num_stages=4 if described else 3,
    )  # fmt: skip


@triton.jit
def _permute(a_ptr, order_ptr, out_ptr, n, blocks, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // blocks).to(tl.int64) * n
    j = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    source = tl.load(order_ptr + j, mask=j < n, other=0)
    tl.store(out_ptr + row + j, tl.load(a_ptr + row + source, mask=j < n, other=0.0), mask=j < n)


def _permuted(a, order):
    """The columns of a in another order."""
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    blocks = triton.cdiv(a.shape[1], 1024)
    _permute[(a.shape[0] * blocks,)](a, order, out, a.shape[1], blocks, BLOCK=1024, num_warps=4)
    return out


@triton.jit
def _code(word, i: tl.constexpr, BITS: tl.constexpr):
    """2^23 + code i of a word in exllama's order, whose bits are those of 2^23 with the code below."""
    shift: tl.constexpr = 4 * (i // 2) + 16 * (i % 2) if BITS == 4 else 8 * i
    return (((word >> shift) & ((1 << BITS) - 1)) | 0x4B000000).to(tl.float32, bitcast=True)


@triton.jit
def _zero(word, column, BITS: tl.constexpr, FROM_0: tl.constexpr):
    """2^23 + the zero points of columns; FROM_0: they are stored as they are, otherwise less 1."""
    zero = (word >> ((column % (32 // BITS)) * BITS)) & ((1 << BITS) - 1)
    if not FROM_0:
        zero += 1
    return zero.to(tl.float32) + 8388608.0


@triton.jit
def _vector(
    a_ptr, order_ptr, word_ptr, zero_ptr, scale_ptr, out_ptr, depth, n, group,
    BITS: tl.constexpr, FROM_0: tl.constexpr, ORDERED: tl.constexpr, WORDS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """One row of a; ORDERED: its elements are taken in another order."""
    PER_WORD: tl.constexpr = 32 // BITS
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([WORDS, COLUMNS], dtype=tl.float32)
    for start in range(0, depth // PER_WORD, WORDS):
        line = start + tl.arange(0, WORDS)
        live = line < depth // PER_WORD
        inside = live[:, None] & (column < n)[None, :]
        word = tl.load(word_ptr + (line.to(tl.int64) * n)[:, None] + column[None, :], mask=inside, other=0)
        of_group = ((line * PER_WORD) // group).to(tl.int64)
        scale = tl.load(scale_ptr + (of_group * n)[:, None] + column[None, :], mask=inside, other=0.0)
        zero_at = zero_ptr + (of_group * (n // PER_WORD))[:, None] + (column // PER_WORD)[None, :]
        zero = _zero(tl.load(zero_at, mask=inside, other=0), column[None, :], BITS, FROM_0)
        products = tl.zeros([WORDS, COLUMNS], dtype=tl.float32)
        for i in tl.static_range(32 // BITS):
            k = line * PER_WORD + i
            if ORDERED:
                k = tl.load(order_ptr + k, mask=live, other=0)
            a = tl.load(a_ptr + k, mask=live, other=0.0).to(tl.float32)
            products += a[:, None] * (_code(word, i, BITS) - zero)
        total += products * scale.to(tl.float32)
    tl.store(out_ptr + column, tl.sum(total, axis=0).to(out_ptr.dtype.element_ty), mask=column < n)


@triton.jit
def _two(word, zero, i: tl.constexpr, BITS: tl.constexpr):
    """Codes i and i + 1 less the zero point."""
    first = (_code(word, i, BITS) - zero).to(tl.float16)
    return tl.join(first, (_code(word, i + 1, BITS) - zero).to(tl.float16))


@triton.jit
def _weights(word, zero, BITS: tl.constexpr, WORDS: tl.constexpr, COLUMNS: tl.constexpr):
    """(WORDS * codes of a word, COLUMNS) of words (WORDS, COLUMNS)."""
    four = tl.join(_two(word, zero, 0, BITS), _two(word, zero, 2, BITS))
    if BITS == 4:
        # (word, column, bits 0, 1 and 2 of the code's number)
        eight = tl.join(four, tl.join(_two(word, zero, 4, 4), _two(word, zero, 6, 4)))
        return tl.reshape(tl.permute(eight, (0, 4, 3, 2, 1)), [WORDS * 8, COLUMNS])
    else:
        return tl.reshape(tl.permute(four, (0, 3, 2, 1)), [WORDS * 4, COLUMNS])


@triton.jit
def _few_rows(
    a_ptr, word_ptr, zero_ptr, scale_ptr, out_ptr, rows, depth, n, group, groups, across,
    BITS: tl.constexpr, FROM_0: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile; groups are multiples of DEPTH rows. A step's scales and zero points are loaded in the step before."""
    PER_WORD: tl.constexpr = 32 // BITS
    WORDS: tl.constexpr = DEPTH // PER_WORD
    row = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    a_at = a_ptr + (row.to(tl.int64) * depth)[:, None] + tl.arange(0, DEPTH)[None, :]
    word_at = word_ptr + (tl.arange(0, WORDS).to(tl.int64) * n)[:, None] + column[None, :]
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    next_scale = tl.load(scale_ptr + column, mask=column < n, other=0.0)
    next_zero = tl.load(zero_ptr + column // PER_WORD, mask=column < n, other=0)
    for start in range(0, depth, DEPTH):
        a = tl.load(a_at, mask=(row < rows)[:, None], other=0.0)
        word = tl.load(word_at, mask=(column < n)[None, :], other=0)
        scale = next_scale.to(tl.float32)
        zero = _zero(next_zero, column, BITS, FROM_0)
        of_group = tl.minimum((start + DEPTH) // group, groups - 1).to(tl.int64)
        next_scale = tl.load(scale_ptr + of_group * n + column, mask=column < n, other=0.0)
        zero_at = zero_ptr + of_group * (n // PER_WORD) + column // PER_WORD
        next_zero = tl.load(zero_at, mask=column < n, other=0)
        total += tl.dot(a, _weights(word, zero[None, :], BITS, WORDS, COLUMNS)) * scale[None, :]
        a_at += DEPTH
        word_at += WORDS * n
    at = out_ptr + (row.to(tl.int64) * n)[:, None] + column[None, :]
    tl.store(at, total.to(out_ptr.dtype.element_ty), mask=(row < rows)[:, None] & (column < n)[None, :])


@triton.jit
def _write_words(
    word_ptr, zero_ptr, scale_ptr, weight_ptr, depth, n, group, blocks,
    BITS: tl.constexpr, FROM_0: tl.constexpr, WORDS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The weights (depth, n) of exllama's words of 4 or 8 bits."""
    PER_WORD: tl.constexpr = 32 // BITS
    line = tl.program_id(0) // blocks * WORDS + tl.arange(0, WORDS)
    column = tl.program_id(0) % blocks * COLUMNS + tl.arange(0, COLUMNS)
    inside = (line < depth // PER_WORD)[:, None] & (column < n)[None, :]
    word = tl.load(word_ptr + (line.to(tl.int64) * n)[:, None] + column[None, :], mask=inside, other=0)
    of_group = ((line * PER_WORD) // group).to(tl.int64)
    scale_at = scale_ptr + (of_group * n)[:, None] + column[None, :]
    scale = tl.load(scale_at, mask=inside, other=0.0).to(tl.float32)
    zero_at = zero_ptr + (of_group * (n // PER_WORD))[:, None] + (column // PER_WORD)[None, :]
    zero = _zero(tl.load(zero_at, mask=inside, other=0), column[None, :], BITS, FROM_0)
    at = weight_ptr + (line.to(tl.int64) * PER_WORD * n)[:, None] + column[None, :]
    for i in tl.static_range(32 // BITS):
        weight = (_code(word, i, BITS) - zero) * scale
        tl.store(at + i * n, weight.to(weight_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _three_bits(low, high, shift):
    """Three bits of two words, from bit ``shift`` of the first on."""
    low, high = low.to(tl.uint32, bitcast=True), high.to(tl.uint32, bitcast=True)
    bits = (low >> shift.to(tl.uint32)) | ((high << 1) << (31 - shift).to(tl.uint32))
    return (bits & 7).to(tl.int32)


@triton.jit
def _codes_of_3(word_ptr, k, column, inside, n, EXLLAMA: tl.constexpr):
    """Codes of 3 bits, of which 32 lie in three words."""
    if EXLLAMA:
        # Ten codes a word, and two of which each word has one bit at its end.
        i = k % 32
        which = tl.minimum(i // 10, 2)
        j = i - which * 10
        at = word_ptr + ((k // 32 * 3)[:, None] * n + column[None, :])
        word0 = tl.load(at, mask=inside, other=0)
        word1 = tl.load(at + n, mask=inside, other=0)
        word2 = tl.load(at + n * 2, mask=inside, other=0)
        word = tl.where((which == 0)[:, None], word0, tl.where((which == 1)[:, None], word1, word2))
        code = (word >> tl.where(i < 30, 3 * (j // 2) + 16 * (j % 2), 0)[:, None]) & 7
        end = tl.where(i == 31, 31, 15)[:, None]
        spread = ((word0 >> end) & 1) | (((word1 >> end) & 1) << 1) | (((word2 >> end) & 1) << 2)
        return tl.where((i < 30)[:, None], code, spread)
    else:
        shift = (k * 3) & 31
        at = word_ptr + (((k * 3) >> 5)[:, None] * n + column[None, :])
        low = tl.load(at, mask=inside, other=0)
        high = tl.load(at + n, mask=inside & (shift > 29)[:, None], other=0)
        return _three_bits(low, high, shift[:, None])


@triton.jit
def _write_any(
    word_ptr, zero_ptr, scale_ptr, group_ptr, weight_ptr, depth, n, group, blocks,
    BITS: tl.constexpr, FROM_0: tl.constexpr, EXLLAMA: tl.constexpr, DEPTH: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The weights (depth, n) of any kind of words, one by one; without exllama a row's group stands in group_ptr."""
    k = tl.program_id(0) // blocks * DEPTH + tl.arange(0, DEPTH)
    column = tl.program_id(0) % blocks * COLUMNS + tl.arange(0, COLUMNS)
    inside = (k < depth)[:, None] & (column < n)[None, :]
    wide = tl.zeros([1, 1], dtype=tl.int64) + n
    of_group = k // group if EXLLAMA else tl.load(group_ptr + k, mask=k < depth, other=0)
    of_group = of_group.to(tl.int64)
    if BITS == 3:
        code = _codes_of_3(word_ptr, k, column, inside, wide, EXLLAMA)
        words = n // 32 * 3
        line = zero_ptr + (of_group * words)[:, None]
        first = ((column * 3) >> 5)[None, :]
        low = tl.load(line + first, mask=inside, other=0)
        high = tl.load(line + tl.minimum(first + 1, words - 1), mask=inside, other=0)
        zero = _three_bits(low, high, ((column * 3) & 31)[None, :])
    else:
        PER_WORD: tl.constexpr = 32 // BITS
        i = k % PER_WORD
        shift = BITS * (i // 2) + 16 * (i % 2) if EXLLAMA and BITS != 8 else BITS * i
        word = tl.load(word_ptr + ((k // PER_WORD)[:, None] * wide + column[None, :]), mask=inside, other=0)
        code = (word >> shift[:, None]) & ((1 << BITS) - 1)
        zero_at = zero_ptr + (of_group * (n // PER_WORD))[:, None] + (column // PER_WORD)[None, :]
        zero_shift = ((column % PER_WORD) * BITS)[None, :]
        zero = (tl.load(zero_at, mask=inside, other=0) >> zero_shift) & ((1 << BITS) - 1)
    if not FROM_0:
        zero += 1
    scale_at = scale_ptr + (of_group * n)[:, None] + column[None, :]
    weight = (code - zero).to(tl.float32) * tl.load(scale_at, mask=inside, other=0.0).to(tl.float32)
    tl.store(weight_ptr + (k[:, None] * wide + column[None, :]), weight.to(weight_ptr.dtype.element_ty), mask=inside)


def _written(operands, a, n, group, order, bits, from_0, exllama):
    """The weights as floats (depth, n)."""
    depth = a.shape[1]
    weight = torch.empty((depth, n), dtype=a.dtype, device=a.device)
    if exllama and bits in (4, 8):
        blocks = triton.cdiv(n, 128)
        _write_words[(triton.cdiv(depth * bits // 32, 16) * blocks,)](
            *operands, weight, depth, n, group, blocks, BITS=bits, FROM_0=from_0, WORDS=16, COLUMNS=128, num_warps=4
        )
    else:
        blocks = triton.cdiv(n, 64)
        _write_any[(triton.cdiv(depth, 32) * blocks,)](
            *operands, order, weight, depth, n, group, blocks, BITS=bits, FROM_0=from_0, EXLLAMA=exllama, DEPTH=32,
            COLUMNS=64, num_warps=4,
        )  # fmt: skip
    return weight


def gptq_gemm(a, b_q_weight, b_gptq_qzeros, b_gptq_scales, b_g_idx, use_exllama, use_v2_format, bit):
    """a: (rows, depth) float16; b_q_weight: (words, n) int32; scales: (groups, n); zero points: packed along n.

    b_g_idx: with exllama the order of a's columns, or of no elements; otherwise the group of each row of weights.
    """
    (rows, depth), n = a.shape, b_q_weight.shape[1]
    out = torch.empty((rows, n), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    bits, exllama = int(bit), bool(use_exllama)
    groups = b_gptq_scales.shape[0]
    group = depth // groups
    ordered = exllama and b_g_idx.numel() > 0
    operands = (b_q_weight, b_gptq_qzeros, b_gptq_scales)
    kinds = {"BITS": bits, "FROM_0": bool(use_v2_format)}
    on_the_way = exllama and bits in (4, 8)
    if on_the_way and rows == 1:
        _vector[(triton.cdiv(n, 16),)](
            a, b_g_idx, *operands, out, depth, n, group, **kinds, ORDERED=ordered, WORDS=256, COLUMNS=16, num_warps=8
        )
        return out
    if ordered:
        a = _permuted(a, b_g_idx)
    if on_the_way and rows <= 64 and depth % 128 == 0 and group % 32 == 0:
        step = 128 if group % 128 == 0 else 64 if group % 64 == 0 else 32
        height = max(16, triton.next_power_of_2(rows))
        width = 64 if n >= 64 * 120 else 32
        across = triton.cdiv(n, width)
        _few_rows[(triton.cdiv(rows, height) * across,)](
            a, *operands, out, rows, depth, n, group, groups, across, **kinds, ROWS=height, COLUMNS=width, DEPTH=step,
            num_warps=4, num_stages=5 if height <= 32 else 4,
        )  # fmt: skip
        return out
    _product(a, _written(operands, a, n, group, b_g_idx, bits, bool(use_v2_format), exllama), out)
    return out
