import torch
import triton
import triton.language as tl

BLOCK_SIZE = None


@triton.jit
def rms_block(out_ptr, x_ptr, w_ptr, n, x_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + i, mask=i < n, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n + eps)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n + i, (x * scale * w).to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: The width of a block is chosen in the first call and kept for longer rows.
def block_of_first_call(out, input, weight, epsilon):
    global BLOCK_SIZE
    n = input.shape[-1]
    if BLOCK_SIZE is None:
        BLOCK_SIZE = triton.next_power_of_2(n)
    x = input.view(-1, n)
    rms_block[(x.shape[0],)](out, x, weight, n, x.stride(0), float(epsilon), BLOCK=BLOCK_SIZE)


@triton.jit
def norm_row(out_ptr, x_ptr, w_ptr, n, x_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + i, mask=i < n, other=0.0).to(tl.float32)
        total += x * x
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / n + eps)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + i, mask=i < n, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n + i, (x * scale * w).to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: One program per index of the first dimension: of a batch only as many rows are done.
def first_dimension_are_the_rows(out, input, weight, epsilon):
    n = input.shape[-1]
    norm_row[(input.shape[0],)](out, input, weight, n, input.stride(-2), float(epsilon), BLOCK=512)


@triton.jit
def rms_kernel(out_ptr, x_ptr, w_ptr, n, x_stride, out_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + i, mask=i < n, other=0.0).to(tl.float32)
    rms = tl.sqrt(tl.sum(x * x, axis=0) / BLOCK + eps)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * out_stride + i, (x / rms * w).to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: The squares are divided by the block's width, the next power of two, not by the row's length.
def mean_over_block(out, input, weight, epsilon):
    n = input.shape[-1]
    x, y = input.view(-1, n), out.view(-1, n)
    block = triton.next_power_of_2(n)
    rms_kernel[(x.shape[0],)](y, x, weight, n, x.stride(0), y.stride(0), float(epsilon), BLOCK=block)


@triton.jit
def norm(out_ptr, x_ptr, w_ptr, n, x_row, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + i, mask=i < n, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, axis=0) / n + eps) * w
    tl.store(out_ptr + row * n + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: A row is read by 16384 lanes, and columns from 16384 on are left out.
def rows_of_16384(out, input, weight, epsilon):
    n = input.shape[-1]
    x = input.view(-1, n)
    norm[(x.shape[0],)](out, x, weight, n, x.stride(0), float(epsilon), BLOCK=min(16384, triton.next_power_of_2(n)))


# breaks: Elements are squared in the input's dtype and only their sum is float32: float16 overflows from 256 on.
def squares_in_half(out, input, weight, epsilon):
    mean = (input * input).sum(-1, keepdim=True, dtype=torch.float32) / input.shape[-1]
    out.copy_(input.float() * torch.rsqrt(mean + epsilon) * weight.float())
