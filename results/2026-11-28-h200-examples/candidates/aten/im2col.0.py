"""im2col: each program fills a block of the columns, zeros where a place lies outside the image.

The image's strides are taken as they are. Values move as integers of their size.
"""

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def _im2col(
    x_ptr, out_ptr, total, channels, height, width, high, wide, kh, kw,
    down_dilation, across_dilation, down_padding, across_padding, down_stride, across_stride,
    image_step, channel_step, row_step, column_step, BLOCK: tl.constexpr,
):  # fmt: skip
    """out is (images, channels * kh * kw, high * wide), row-major."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    x = i % wide
    rest = i // wide
    y = rest % high
    rest = rest // high
    across = rest % kw
    rest = rest // kw
    down = rest % kh
    rest = rest // kh
    channel = rest % channels
    image = rest // channels
    row = y * down_stride - down_padding + down * down_dilation
    column = x * across_stride - across_padding + across * across_dilation
    seen = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    at = image * image_step + channel * channel_step + row * row_step + column * column_step
    tl.store(out_ptr + i, tl.load(x_ptr + at, mask=seen, other=0), mask=inside)


def im2col(self, kernel_size, dilation, padding, stride):
    """Columns of ``self``, (N, C, H, W) or (C, H, W); row-major."""
    shape = _shape(self, kernel_size, dilation, padding, stride)
    out = torch.empty(shape, dtype=self.dtype, device=self.device)
    return _filled(out, self, kernel_size, dilation, padding, stride)


def im2col_out(self, kernel_size, dilation, padding, stride, *, out):
    """The same in ``out``, which is row-major."""
    return _filled(out, self, kernel_size, dilation, padding, stride)


def _places(self, kernel_size, dilation, padding, stride):
    """How many places the block has, down and across."""
    reach = [each * (size - 1) + 1 for size, each in zip(kernel_size, dilation, strict=True)]
    sizes = zip(self.shape[-2:], padding, reach, stride, strict=True)
    return [(size + 2 * pad - length) // step + 1 for size, pad, length, step in sizes]


def _shape(self, kernel_size, dilation, padding, stride):
    high, wide = _places(self, kernel_size, dilation, padding, stride)
    return (*self.shape[:-3], self.shape[-3] * kernel_size[0] * kernel_size[1], high * wide)


def _filled(out, self, kernel_size, dilation, padding, stride):
    if out.numel() == 0:
        return out
    images = self if self.ndim == 4 else self[None]
    plain = _SAME_SIZE[images.element_size()]
    high, wide = _places(self, kernel_size, dilation, padding, stride)
    block = 1024 if images.is_cuda else 1 << 17
    _im2col[(triton.cdiv(out.numel(), block),)](
        images.view(plain), out.view(plain), out.numel(), *images.shape[1:], high, wide, *kernel_size, *dilation,
        *padding, *stride, *images.stride(), BLOCK=block,
    )  # fmt: skip
    return out
