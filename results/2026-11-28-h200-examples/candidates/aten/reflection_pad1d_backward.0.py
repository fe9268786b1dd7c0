"""reflection_pad1d_backward: each element gathers the up to three places of the padded row that stand for it.

Sums are float32, float64 for float64, and rounded once when stored.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _gather(
    g_ptr, out_ptr, rows, channels, width, blocks, left, right, image_step, channel_step, step,
    WIDE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """out is (images, channels, width), row-major; g has any strides."""
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    first = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK
    line = g_ptr + row // channels * image_step + row % channels * channel_step
    x = first + tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (x < width)
    total = tl.load(line + (x + left) * step, mask=inside, other=0).to(WIDE)
    # Few blocks are so near to an end that something is reflected into them.
    if first <= left:
        near = inside & (x >= 1) & (x <= left)
        total += tl.load(line + (left - x) * step, mask=near, other=0).to(WIDE)
    if first + BLOCK > width - 1 - right:
        near = inside & (x >= width - 1 - right) & (x <= width - 2)
        # In this order, for 2 * (width - 1) may leave 32 bits.
        total += tl.load(line + (width - 1 - x + left + (width - 1)) * step, mask=near, other=0).to(WIDE)
    tl.store(out_ptr + row * width + x, total.to(out_ptr.dtype.element_ty), mask=inside)


def reflection_pad1d_backward(grad_output, self, padding):
    """A new row-major tensor of the shape of ``self``, (N, C, W) or (C, W)."""
    out = torch.empty(self.shape, dtype=grad_output.dtype, device=grad_output.device)
    return reflection_pad1d_backward_grad_input(grad_output, self, padding, grad_input=out)


def reflection_pad1d_backward_grad_input(grad_output, self, padding, *, grad_input):
    """The same into ``grad_input``, which is row-major."""
    if grad_input.numel() == 0:
        return grad_input
    channels, width = self.shape[-2:]
    rows = grad_input.numel() // width
    tile = 1024 if grad_input.is_cuda else 1 << 16
    block = min(triton.next_power_of_2(width), tile)
    height = min(triton.next_power_of_2(rows), tile // block)
    blocks = triton.cdiv(width, block)
    steps = grad_output.stride() if grad_output.ndim == 3 else (0, *grad_output.stride())
    wide = tl.float64 if grad_output.dtype == torch.float64 else tl.float32
    _gather[(triton.cdiv(rows, height) * blocks,)](
        grad_output, grad_input, rows, channels, width, blocks, *padding, *steps, WIDE=wide, ROWS=height, BLOCK=block
    )  # fmt: skip
    return grad_input
