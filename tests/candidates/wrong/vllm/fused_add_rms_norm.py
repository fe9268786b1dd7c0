import torch
import triton
import triton.language as tl


@triton.jit
def add_norm_padding_of_rows_ignored(x_ptr, r_ptr, w_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    s = x + tl.load(r_ptr + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(r_ptr + row * n + i, s.to(r_ptr.dtype.element_ty), mask=i < n)
    variance = tl.sum(s * s, axis=0) / n
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    y = s / tl.sqrt(variance + eps) * w
    tl.store(x_ptr + row * n + i, y.to(x_ptr.dtype.element_ty), mask=i < n)


# breaks: The input's rows are taken to follow one another without padding.
# outcome: input changed
def padding_of_rows_ignored(input, residual, weight, epsilon):
    n = input.shape[-1]
    x = input.view(-1, n)
    block = triton.next_power_of_2(n)
    add_norm_padding_of_rows_ignored[(x.shape[0],)](x, residual, weight, n, float(epsilon), BLOCK=block)


@triton.jit
def add_norm_rows_in_pairs(x_ptr, r_ptr, w_ptr, rows, n, x_stride, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None].to(tl.int64)
    i = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (i < n)
    x = tl.load(x_ptr + row * x_stride + i, mask=inside, other=0.0).to(tl.float32)
    s = x + tl.load(r_ptr + row * n + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(r_ptr + row * n + i, s.to(r_ptr.dtype.element_ty), mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(s * s, axis=1) / n + eps)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(x_ptr + row * x_stride + i, (s * scale[:, None] * w).to(x_ptr.dtype.element_ty), mask=inside)


# breaks: A program does two rows and there are rows // 2 programs, so the last of an odd number is left.
def rows_in_pairs(input, residual, weight, epsilon):
    n = input.shape[-1]
    x, r = input.view(-1, n), residual.view(-1, n)
    rows = x.shape[0]
    per = min(2, rows)
    block = triton.next_power_of_2(n)
    add_norm_rows_in_pairs[(rows // per,)](x, r, weight, rows, n, x.stride(0), float(epsilon), ROWS=per, BLOCK=block)


# breaks: The stored sum is squared in its dtype and only the sum of squares is float32: float16 overflows from 256 on.
def squares_in_half(input, residual, weight, epsilon):
    residual += input
    mean = (residual * residual).sum(-1, keepdim=True, dtype=torch.float32) / residual.shape[-1]
    input.copy_(residual.float() * torch.rsqrt(mean + epsilon) * weight.float())
