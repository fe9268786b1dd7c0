"""marlin_int4_fp8_preprocess: 4-bit weights recoded for Marlin's fp8 kernels, eight weights to a word.

Without zero points weight q becomes q - 8, or 15 - q below 8; with them q - zero, or 15 - q where it is below zero.
Words are worked on whole: four weights at a time, one in each byte.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _recode(word_ptr, out_ptr, words, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(word_ptr + i, mask=i < words, other=0)
    upper = (word >> 3) & 0x11111111
    # q ^ 8 from 8 on, otherwise q ^ 15.
    tl.store(out_ptr + i, word ^ (~(upper * 7)), mask=i < words)


@triton.jit
def _recode_four(weight, zero):
    """Four weights and their zero points, each in the low half of a byte."""
    # Bit 4 stays where nothing was borrowed, which is where the weight is not below its zero point.
    difference = (weight | 0x10101010) - zero
    above = ((difference >> 4) & 0x01010101) * 15
    return (difference & above) | ((weight ^ 0x0F0F0F0F) & (above ^ 0x0F0F0F0F))


@triton.jit
def _recode_zeros(
    word_ptr, zero_ptr, out_ptr, rows, columns, group, zero_row, zero_column, across,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A tile of words. A group is a multiple of ROWS rows, so all of them have one row of zero points."""
    top = tl.program_id(0) // across * ROWS
    row = top + tl.arange(0, ROWS)
    column = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    zeros = zero_ptr + (top // group).to(tl.int64) * zero_row + column.to(tl.int64) * zero_column
    zero = tl.load(zeros, mask=column < columns, other=0)
    at = row[:, None].to(tl.int64) * columns + column[None, :]
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    word = tl.load(word_ptr + at, mask=inside, other=0)
    low = _recode_four(word & 0x0F0F0F0F, (zero & 0x0F0F0F0F)[None, :])
    high = _recode_four((word >> 4) & 0x0F0F0F0F, ((zero >> 4) & 0x0F0F0F0F)[None, :])
    tl.store(out_ptr + at, low | (high << 4), mask=inside)


def marlin_int4_fp8_preprocess(qweight, qzeros_or_none=None, inplace=False):
    """qweight: dense int32; qzeros_or_none: (groups, columns) int32, then qweight is (rows, columns)."""
    out = qweight if inplace else torch.empty_like(qweight, memory_format=torch.contiguous_format)
    if qweight.numel() == 0:
        return out
    if qzeros_or_none is None:
        _recode[(triton.cdiv(qweight.numel(), 2048),)](qweight, out, qweight.numel(), BLOCK=2048, num_warps=4)
        return out
    rows, columns = qweight.shape
    block = min(256, triton.next_power_of_2(columns))
    across = triton.cdiv(columns, block)
    _recode_zeros[(across * triton.cdiv(rows, 8),)](
        qweight, qzeros_or_none, out, rows, columns, rows // qzeros_or_none.shape[0],
        qzeros_or_none.stride(0), qzeros_or_none.stride(1), across, ROWS=8, COLUMNS=block, num_warps=4,
    )  # fmt: skip
    return out


def marlin_int4_fp8_preprocess_inplace(qweight, qzeros_or_none=None, inplace=True):
    """The same with inplace as the default."""
    return marlin_int4_fp8_preprocess(qweight, qzeros_or_none, inplace)
