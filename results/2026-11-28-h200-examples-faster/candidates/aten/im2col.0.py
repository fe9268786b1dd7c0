"""im2col: each program fills a tile of one image's columns, zeros where a place lies outside the image.

A row of the tile is a channel and an element of the block, a column is a place of the block. The image's strides are
taken as they are. Values move as integers of their size.
"""

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def _im2col(
    x_ptr, out_ptr, images, height, width, rows, columns, wide, tiles_down, tiles_across,
    image_step, channel_step, row_step, column_step, down_dilation, across_dilation, down_padding, across_padding,
    down_stride, across_stride,
    KH: tl.constexpr, KW: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BIG: tl.constexpr,
):  # fmt: skip
    """out is (images, rows, columns), row-major: rows are (channels, KH, KW), columns (places down, wide)."""
    program = tl.program_id(0)
    if BIG:
        # All that follows then has 64 bits.
        program = program.to(tl.int64) + tl.program_id(1).to(tl.int64) * tl.num_programs(0)
    image = program // (tiles_down * tiles_across)
    tile = program - image * (tiles_down * tiles_across)
    tile_down = tile // tiles_across
    i = tile_down * ROWS + tl.arange(0, ROWS)
    j = (tile - tile_down * tiles_across) * COLUMNS + tl.arange(0, COLUMNS)
    if BIG:
        # The grid's last programs may have no image.
        rows = tl.where(image < images, rows, 0)
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    channel = i // (KH * KW)
    element = i - channel * (KH * KW)
    down = element // KW
    across = element - down * KW
    y = j // wide
    x = j - y * wide
    row = (down * down_dilation)[:, None] + (y * down_stride - down_padding)[None, :]
    column = (across * across_dilation)[:, None] + (x * across_stride - across_padding)[None, :]
    seen = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    at = x_ptr + image * image_step + (channel * channel_step)[:, None] + row * row_step + column * column_step
    out_at = out_ptr + image * rows * columns + (i * columns)[:, None] + j[None, :]
    tl.store(out_at, tl.load(at, mask=seen, other=0), mask=inside)


def im2col(self, kernel_size, dilation, padding, stride):
    """Columns of ``self``, (N, C, H, W) or (C, H, W); row-major."""
    high, wide = _places(self, kernel_size, dilation, padding, stride)
    shape = (*self.shape[:-3], self.shape[-3] * kernel_size[0] * kernel_size[1], high * wide)
    out = torch.empty(shape, dtype=self.dtype, device=self.device)
    return im2col_out(self, kernel_size, dilation, padding, stride, out=out)


def im2col_out(self, kernel_size, dilation, padding, stride, *, out):
    """The same in ``out``, which is row-major."""
    if out.numel() == 0:
        return out
    images = self if self.ndim == 4 else self[None]
    count, channels, height, width = images.shape
    high, wide = _places(self, kernel_size, dilation, padding, stride)
    rows, columns = channels * kernel_size[0] * kernel_size[1], high * wide
    tile_rows, tile_columns = _tile(rows, columns, 4096 if images.is_cuda else 1 << 17)
    tiles_down, tiles_across = triton.cdiv(rows, tile_rows), triton.cdiv(columns, tile_columns)
    # How far offsets into out and the images reach, and rows and columns within a padded image.
    reach = max(
        out.numel() + tile_rows * columns + tile_columns,
        sum((size - 1) * step for size, step in zip(images.shape, images.stride(), strict=True)),
        height + 2 * padding[0],
        width + 2 * padding[1],
    )
    programs = count * tiles_down * tiles_across
    plain = _SAME_SIZE[images.element_size()]
    _im2col[(min(programs, 1 << 30), triton.cdiv(programs, 1 << 30))](
        images.view(plain), out.view(plain), count, height, width, rows, columns, wide, tiles_down, tiles_across,
        *images.stride(), *dilation, *padding, *stride, KH=kernel_size[0], KW=kernel_size[1],
        ROWS=tile_rows, COLUMNS=tile_columns, BIG=reach >= 2**31 - 2**24, num_warps=4,
    )  # fmt: skip
    return out


def _places(self, kernel_size, dilation, padding, stride):
    """How many places the block has, down and across."""
    reach = [each * (size - 1) + 1 for size, each in zip(kernel_size, dilation, strict=True)]
    sizes = zip(self.shape[-2:], padding, reach, stride, strict=True)
    return [(size + 2 * pad - length) // step + 1 for size, pad, length, step in sizes]


def _tile(rows, columns, elements):
    """Rows and columns of a tile of at most ``elements``."""
    wide = min(256, triton.next_power_of_2(columns))
    if columns > 64 and triton.cdiv(columns, 256) * 256 > 1.3 * columns:
        # Too much of the last tile would be empty.
        wide = 128
    return min(triton.next_power_of_2(rows), elements // wide), wide
