"""gptq_marlin_gemm: a times 4- or 8-bit weights, with scales, zero points and bias, all in Marlin's orders.

Words come as tiles of 16 rows and 64 columns; an eighth of a tile has the columns p, p + 8, p + 16 ... of it. They are
decoded on the way: for one row of a by a vector times a matrix, for few on chip, as operands of the tensor cores. With
many rows, or rows in another order, the weights are written out as floats and multiplied then.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

_UINT4 = 1125899906843648
_UINT8B128 = 1125899923621888
"""vLLM's numbers of the types of 4 bits with zero points and of 8 bits with a bias of 128."""


@triton.jit
def _single_place(column):
    """Where the bias, or the scale of the only group, of a column lies."""
    c = column % 32
    return (column - c) + 8 * ((c % 8) // 2) + 2 * (c // 8) + c % 2


@triton.jit
def _scale_place(column, SINGLE: tl.constexpr):
    """Where the scale of a column lies within its group; SINGLE: there is one group."""
    if SINGLE:
        return _single_place(column)
    else:
        c = column % 64
        return (column - c) + 8 * (c % 8) + c // 8


@triton.jit
def _zero_place(column):
    """The word of a group's zero points that has a column's."""
    c = column % 64
    return ((column - c) + 8 * (c % 8) + c // 8) // 8


@triton.jit
def _float(code):
    """2^23 + code, whose bits are those of 2^23 with the code below."""
    return (code | 0x4B000000).to(tl.float32, bitcast=True)


@triton.jit
def _zero(word, column):
    """2^23 + the zero points of columns."""
    e = (column % 64) // 8
    return ((word >> (4 * (e // 2 + 4 * (e % 2)))) & 15).to(tl.float32) + 8388608.0


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
    a, b, out_ptr, bias_ptr, rows, columns, depth,
    BIASED: tl.constexpr, DESCRIBED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
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
    if BIASED:
        bias = tl.load(bias_ptr + _single_place(column), mask=column < columns, other=0.0)
        total += bias.to(tl.float32)[None, :]
    at = out_ptr + (row.to(tl.int64) * columns)[:, None] + column[None, :]
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    tl.store(at, total.to(out_ptr.dtype.element_ty), mask=inside)


def _product(a, b, out, bias):
    """out = a @ b + bias, on a GPU by tensor descriptors, which the hardware copies without threads."""
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
        left, right, out, bias, rows, columns, depth, BIASED=bias is not None, DESCRIBED=described,
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
def _weights(word, BITS: tl.constexpr, TILES: tl.constexpr, EIGHTHS: tl.constexpr):
    """2^23 + code, (16 * TILES, 8 * EIGHTHS), of EIGHTHS eighths of TILES tiles.

    Of eighth p, pair of rows q and columns w, a word of 4 bits has number 16 * p + 4 * q + w of its tile, one of 8 bits
    32 * p + 8 * q + w.
    """
    if BITS == 4:
        word = tl.reshape(word, [TILES, EIGHTHS, 4, 4])
        # The nibbles of s, h and b, which say half of w's columns, of the rows, and row of the pair: 2 s + h + 4 b.
        s0h0 = tl.join(_float(word & 15), _float((word >> 16) & 15))
        s0h1 = tl.join(_float((word >> 4) & 15), _float((word >> 20) & 15))
        s1h0 = tl.join(_float((word >> 8) & 15), _float((word >> 24) & 15))
        s1h1 = tl.join(_float((word >> 12) & 15), _float((word >> 28) & 15))
        weight = tl.join(tl.join(s0h0, s0h1), tl.join(s1h0, s1h1))
        # (tile, p, q, w, b, h, s) to (tile, h, q, b, w, s, p)
        return tl.reshape(tl.permute(weight, (0, 5, 2, 4, 3, 6, 1)), [16 * TILES, 8 * EIGHTHS])
    else:
        word = tl.reshape(word, [TILES, EIGHTHS, 4, 8])
        h0 = tl.join(_float(word & 255), _float((word >> 16) & 255))
        h1 = tl.join(_float((word >> 8) & 255), _float((word >> 24) & 255))
        # (tile, p, q, w, b, h) to (tile, h, q, b, w, p)
        return tl.reshape(tl.permute(tl.join(h0, h1), (0, 5, 2, 4, 3, 1)), [16 * TILES, 8 * EIGHTHS])


@triton.jit
def _few_rows(
    a_ptr, word_ptr, scale_ptr, zero_ptr, bias_ptr, out_ptr, rows, depth, n, group, groups, across,
    BITS: tl.constexpr, SINGLE: tl.constexpr, ZEROS: tl.constexpr, BIASED: tl.constexpr,
    ROWS: tl.constexpr, EIGHTHS: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """A tile; groups are multiples of 16 * TILES rows. A step's scales are loaded in the step before."""
    tile = tl.program_id(0) % across // (8 // EIGHTHS)
    eighth = tl.program_id(0) % across % (8 // EIGHTHS)
    j = tl.arange(0, 8 * EIGHTHS)
    column = tile * 64 + 8 * (j // EIGHTHS) + eighth * EIGHTHS + j % EIGHTHS
    row = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    line = n // 64 * (32 * BITS)
    a_at = a_ptr + (row.to(tl.int64) * depth)[:, None] + tl.arange(0, 16 * TILES)[None, :]
    own = tile * (32 * BITS) + eighth * (4 * BITS * EIGHTHS) + tl.arange(0, 4 * BITS * EIGHTHS)
    word_at = word_ptr + (tl.arange(0, TILES).to(tl.int64) * line)[:, None] + own[None, :]
    scale_ptr += _scale_place(column, SINGLE)
    total = tl.zeros([ROWS, 8 * EIGHTHS], dtype=tl.float32)
    next_scale = tl.load(scale_ptr)
    if ZEROS:
        zero_ptr += _zero_place(column)
        next_zero = tl.load(zero_ptr)
    for start in range(0, depth, 16 * TILES):
        a = tl.load(a_at, mask=(row < rows)[:, None], other=0.0)
        word = tl.load(word_at)
        scale = next_scale.to(tl.float32)
        of_group = tl.minimum((start + 16 * TILES) // group, groups - 1).to(tl.int64)
        next_scale = tl.load(scale_ptr + of_group * n)
        weight = _weights(word, BITS, TILES, EIGHTHS)
        if ZEROS:
            weight -= _zero(next_zero, column)[None, :]
            next_zero = tl.load(zero_ptr + of_group * (n // 8))
        else:
            weight -= 8388616.0 if BITS == 4 else 8388736.0
        total += tl.dot(a, weight.to(a.dtype)) * scale[None, :]
        a_at += 16 * TILES
        word_at += TILES * line
    if BIASED:
        total += tl.load(bias_ptr + _single_place(column)).to(tl.float32)[None, :]
    at = out_ptr + (row.to(tl.int64) * n)[:, None] + column[None, :]
    tl.store(at, total.to(out_ptr.dtype.element_ty), mask=(row < rows)[:, None])


@triton.jit
def _four_products(a0, a1, a8, a9, word, zero, FIRST: tl.constexpr, BITS: tl.constexpr):
    """Four of a word's codes, from bit FIRST on, less their zero point, times rows 0, 8, 1 and 9 of a pair's 16."""
    mask: tl.constexpr = (1 << BITS) - 1
    products = a0 * (_float((word >> FIRST) & mask) - zero)
    products += a8 * (_float((word >> (FIRST + BITS)) & mask) - zero)
    products += a1 * (_float((word >> (FIRST + 16)) & mask) - zero)
    products += a9 * (_float((word >> (FIRST + 16 + BITS)) & mask) - zero)
    return products


@triton.jit
def _sum_of_pairs(total, EIGHTHS: tl.constexpr, BITS: tl.constexpr):
    return tl.sum(tl.reshape(tl.sum(total, axis=0), [EIGHTHS, 4, BITS]), axis=1)


@triton.jit
def _vector(
    a_ptr, word_ptr, scale_ptr, zero_ptr, bias_ptr, out_ptr, depth, n, group,
    BITS: tl.constexpr, SINGLE: tl.constexpr, ZEROS: tl.constexpr, BIASED: tl.constexpr,
    EIGHTHS: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """One row of a, EIGHTHS eighths of 64 columns; words of 4 bits have two columns, 8 apart."""
    tile, eighth = tl.program_id(0) // (8 // EIGHTHS), tl.program_id(0) % (8 // EIGHTHS)
    i = tl.arange(0, 4 * BITS * EIGHTHS)
    width: tl.constexpr = 64 // BITS
    column = tile * 64 + width * (i % BITS) + eighth * EIGHTHS + i // (4 * BITS)
    line = n // 64 * (32 * BITS)
    total = tl.zeros([TILES, 4 * BITS * EIGHTHS], dtype=tl.float32)
    second = tl.zeros([TILES, 4 * BITS * EIGHTHS], dtype=tl.float32)
    for start in range(0, depth // 16, TILES):
        t = start + tl.arange(0, TILES)
        live = (t < depth // 16)[:, None]
        own = tile * (32 * BITS) + eighth * (4 * BITS * EIGHTHS) + i
        word = tl.load(word_ptr + (t.to(tl.int64) * line)[:, None] + own[None, :], mask=live, other=0)
        of_group = ((t * 16) // group).to(tl.int64)
        a_at = a_ptr + (t * 16)[:, None] + (2 * (i // BITS % 4))[None, :]
        a0 = tl.load(a_at, mask=live, other=0.0).to(tl.float32)
        a1 = tl.load(a_at + 1, mask=live, other=0.0).to(tl.float32)
        a8 = tl.load(a_at + 8, mask=live, other=0.0).to(tl.float32)
        a9 = tl.load(a_at + 9, mask=live, other=0.0).to(tl.float32)
        scales = scale_ptr + (of_group * n)[:, None]
        scale = tl.load(scales + _scale_place(column, SINGLE)[None, :], mask=live, other=0.0).to(tl.float32)
        if ZEROS:
            zeros = zero_ptr + (of_group * (n // 8))[:, None]
            zero = _zero(tl.load(zeros + _zero_place(column)[None, :], mask=live, other=0), column[None, :])
        else:
            zero = 8388616.0 if BITS == 4 else 8388736.0
        total += _four_products(a0, a1, a8, a9, word, zero, 0, BITS) * scale
        if BITS == 4:
            place = _scale_place(column + 8, SINGLE)
            scale = tl.load(scales + place[None, :], mask=live, other=0.0).to(tl.float32)
            if ZEROS:
                at = zeros + _zero_place(column + 8)[None, :]
                zero = _zero(tl.load(at, mask=live, other=0), (column + 8)[None, :])
            second += _four_products(a0, a1, a8, a9, word, zero, 8, BITS) * scale
    column = tile * 64 + width * tl.arange(0, BITS)[None, :] + eighth * EIGHTHS + tl.arange(0, EIGHTHS)[:, None]
    result = _sum_of_pairs(total, EIGHTHS, BITS)
    if BIASED:
        result += tl.load(bias_ptr + _single_place(column)).to(tl.float32)
    tl.store(out_ptr + column, result.to(out_ptr.dtype.element_ty))
    if BITS == 4:
        result = _sum_of_pairs(second, EIGHTHS, BITS)
        if BIASED:
            result += tl.load(bias_ptr + _single_place(column + 8)).to(tl.float32)
        tl.store(out_ptr + column + 8, result.to(out_ptr.dtype.element_ty))


@triton.jit
def _write(
    word_ptr, scale_ptr, zero_ptr, group_ptr, weight_ptr, depth, n, group, across,
    BITS: tl.constexpr, SINGLE: tl.constexpr, ZEROS: tl.constexpr, LISTED: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """The weights of TILES tiles, one below the other; LISTED: the group of each row stands in group_ptr."""
    band, tile = tl.program_id(0) // across, tl.program_id(0) % across
    t = band * TILES + tl.arange(0, TILES)
    own = tile * (32 * BITS) + tl.arange(0, 32 * BITS)
    at = word_ptr + (t.to(tl.int64) * (across * (32 * BITS)))[:, None] + own[None, :]
    weight = _weights(tl.load(at, mask=(t < depth // 16)[:, None], other=0), BITS, TILES, 8)
    k = band * (16 * TILES) + tl.arange(0, 16 * TILES)
    column = tile * 64 + tl.arange(0, 64)
    place = _scale_place(column, SINGLE)[None, :]
    live = (k < depth)[:, None]
    if LISTED:
        of_group = tl.load(group_ptr + k, mask=k < depth, other=0).to(tl.int64)[:, None]
    else:
        # All these rows are of one group.
        of_group = tl.zeros([1, 1], dtype=tl.int64) + (band * (16 * TILES)) // group
    scale = tl.load(scale_ptr + of_group * n + place, mask=live if LISTED else None, other=0.0 if LISTED else None)
    if ZEROS:
        zeros = zero_ptr + of_group * (n // 8) + _zero_place(column)[None, :]
        word = tl.load(zeros, mask=live if LISTED else None, other=0 if LISTED else None)
        weight -= _zero(word, column[None, :])
    else:
        weight -= 8388616.0 if BITS == 4 else 8388736.0
    weight = (weight * scale.to(tl.float32)).to(weight_ptr.dtype.element_ty)
    tl.store(weight_ptr + (k.to(tl.int64) * n)[:, None] + column[None, :], weight, mask=live)


def _given(x):
    """None for a tensor of no elements, which stands for none."""
    return x if x is not None and x.numel() else None


def gptq_marlin_gemm(
    a, c_or_none, b_q_weight, b_bias_or_none, b_scales, a_scales, global_scale, b_zeros_or_none, g_idx_or_none,
    perm_or_none, workspace, b_type_id, size_m, size_n, size_k, is_k_full, use_atomic_add, use_fp32_reduce, is_zp_float,
):  # fmt: skip
    """a: (size_m, size_k), float16 or bfloat16; b_scales: (groups, size_n). Returns (size_m, size_n).

    perm_or_none: the order of a's columns; g_idx_or_none: the group of each row of weights, in that order.
    """
    (rows, depth), n = a.shape, size_n
    out = torch.empty((rows, n), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    bits = 8 if b_type_id == _UINT8B128 else 4
    zeros = _given(b_zeros_or_none) if b_type_id == _UINT4 else None
    bias, order = _given(b_bias_or_none), _given(perm_or_none)
    groups = b_scales.shape[0]
    group = depth // groups
    listed = _given(g_idx_or_none) if groups > 1 else None
    operands = (b_q_weight, b_scales, zeros)
    kinds = {"BITS": bits, "SINGLE": groups == 1, "ZEROS": zeros is not None}
    tiles = 8 if group % 128 == 0 else 4 if group % 64 == 0 else 2
    if order is None and listed is None and rows == 1:
        _vector[(n // 64 * 4,)](
            a, *operands, bias, out, depth, n, group, **kinds, BIASED=bias is not None, EIGHTHS=2,
            TILES=64 if bits == 4 else 32, num_warps=8,
        )  # fmt: skip
        return out
    if order is None and listed is None and rows <= 64:
        height = max(16, triton.next_power_of_2(rows))
        eighths = 8 if n // 64 >= 112 else 4
        across = n // 64 * (8 // eighths)
        _few_rows[(triton.cdiv(rows, height) * across,)](
            a, *operands, bias, out, rows, depth, n, group, groups, across, **kinds, BIASED=bias is not None,
            ROWS=height, EIGHTHS=eighths, TILES=tiles, num_warps=4, num_stages=5 if height <= 32 else 4,
        )  # fmt: skip
        return out
    if order is not None:
        a = _permuted(a, order)
    weight = torch.empty((depth, n), dtype=a.dtype, device=a.device)
    _write[(triton.cdiv(depth, 16 * tiles) * (n // 64),)](
        *operands, listed, weight, depth, n, group, n // 64, **kinds, LISTED=listed is not None, TILES=tiles,
        num_warps=4,
    )  # fmt: skip
    _product(a, weight, out, bias)
    return out
