"""upsample_nearest2d_backward: each element sums the gradient's places that were copied from it.

Where sizes grew by powers of two, the places are a block of fixed size, and a program reads whole rows of them.
Elsewhere the first place is found by undoing the forward pass's rounding. Sums are float32, float64 for float64.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _blocks(
    g_ptr, out_ptr, rows, width, g_width, across,
    HIGH: tl.constexpr, WIDE: tl.constexpr, SUM: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """g (rows * HIGH, width * WIDE) to out (rows, width), both row-major."""
    row = (tl.program_id(0) // across).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    first = tl.program_id(0) % across * COLUMNS
    place = first * WIDE + tl.arange(0, COLUMNS * WIDE)
    total = tl.zeros((ROWS, COLUMNS * WIDE), SUM)
    for down in tl.static_range(HIGH):
        at = (row * HIGH + down)[:, None] * g_width + place[None, :]
        total += tl.load(g_ptr + at, mask=(row < rows)[:, None] & (place < g_width)[None, :], other=0.0).to(SUM)
    if WIDE > 1:
        total = tl.sum(tl.reshape(total, (ROWS, COLUMNS, WIDE)), axis=2)
    column = first + tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < width)[None, :]
    tl.store(out_ptr + row[:, None] * width + column[None, :], total.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _first(y, scale, size, places):
    """The first of ``places`` whose source min(floor(place * scale), size - 1) is y or more."""
    # A guess that rounding may have moved by a few places, then the count of those that come before.
    guess = tl.minimum(tl.floor(y.to(tl.float32) / scale), 1073741824.0).to(tl.int32) - 3
    guess = tl.where(guess < 0, 0, guess)
    guess = tl.where(guess > places, places, guess)
    before = guess * 0
    for step in tl.static_range(7):
        source = tl.floor((guess + step).to(tl.float32) * scale).to(tl.int32)
        source = tl.where(source > size - 1, size - 1, source)
        before += ((guess + step < places) & (source < y)).to(tl.int32)
    return guess + before


@triton.jit
def _any_scale(
    g_ptr, out_ptr, n, channels, height, width, g_height, g_width, down_scale, across_scale,
    image_step, channel_step, row_step, column_step, SUM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """out is (images, channels, height, width), row-major; g has any strides."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = (i % width).to(tl.int32)
    y = (i // width % height).to(tl.int32)
    plane = i // width // height
    top = _first(y, down_scale, height, g_height)
    bottom = tl.where(y == height - 1, g_height, _first(y + 1, down_scale, height, g_height))
    left = _first(x, across_scale, width, g_width)
    right = tl.where(x == width - 1, g_width, _first(x + 1, across_scale, width, g_width))
    base = plane // channels * image_step + plane % channels * channel_step
    total = tl.zeros((BLOCK,), SUM)
    for down in range(tl.max(tl.where(inside, bottom - top, 0), axis=0)):
        row = top + down
        line = base + row.to(tl.int64) * row_step
        for across in range(tl.max(tl.where(inside, right - left, 0), axis=0)):
            column = left + across
            seen = inside & (row < bottom) & (column < right)
            total += tl.load(g_ptr + line + column.to(tl.int64) * column_step, mask=seen, other=0.0).to(SUM)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=inside)


def _growth(places, size, scale):
    """The power of two up to 16 by which a size grew, or 0."""
    factor = places // size
    whole = places == factor * size and factor in (1, 2, 4, 8, 16)
    return factor if whole and (scale is None or scale <= 0 or scale == factor) else 0


def _filled(out, g, scales_h, scales_w):
    """``out`` is row-major."""
    if out.numel() == 0 or g.numel() == 0:
        return out.zero_()
    channels, height, width = out.shape[1:]
    g_height, g_width = g.shape[2:]
    total = tl.float64 if g.dtype == torch.float64 else tl.float32
    high, wide = _growth(g_height, height, scales_h), _growth(g_width, width, scales_w)
    if high and wide:
        rows = out.numel() // width
        columns = min(triton.next_power_of_2(width), max(16, 1024 // wide))
        lines = max(1, min((2048 if g.is_cuda else 1 << 16) // (columns * wide), triton.next_power_of_2(rows)))
        across = triton.cdiv(width, columns)
        _blocks[(triton.cdiv(rows, lines) * across,)](
            g.contiguous(), out, rows, width, g_width, across,
            HIGH=high, WIDE=wide, SUM=total, ROWS=lines, COLUMNS=columns,
        )  # fmt: skip
    else:
        down = 1.0 / scales_h if scales_h is not None and scales_h > 0 else height / g_height
        across = 1.0 / scales_w if scales_w is not None and scales_w > 0 else width / g_width
        block = 256 if g.is_cuda else 1 << 14
        _any_scale[(triton.cdiv(out.numel(), block),)](
            g, out, out.numel(), channels, height, width, g_height, g_width, down, across, *g.stride(),
            SUM=total, BLOCK=block,
        )  # fmt: skip
    return out


def upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h=None, scales_w=None):
    """A new row-major tensor of shape ``input_size``, (N, C, H, W)."""
    out = torch.empty(input_size, dtype=grad_output.dtype, device=grad_output.device)
    return _filled(out, grad_output, scales_h, scales_w)


def upsample_nearest2d_backward_grad_input(
    grad_output, output_size, input_size, scales_h=None, scales_w=None, *, grad_input
):  # fmt: skip
    """The same into ``grad_input``, of any strides, which is returned."""
    if grad_input.is_contiguous():
        return _filled(grad_input, grad_output, scales_h, scales_w)
    return grad_input.copy_(upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h, scales_w))
