import torch
import triton
import triton.language as tl


@triton.jit
def norm_quant_bound_for_the_maximum(
    q_ptr, x_ptr, w_ptr, scale_ptr, ub_ptr, r_ptr, n, x_row, eps, top, least,
    ADD: tl.constexpr, BOUND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + i, mask=i < n, other=0.0)
    if ADD:
        x = (x.to(tl.float32) + tl.load(r_ptr + row * n + i, mask=i < n, other=0.0).to(tl.float32)).to(x.dtype)
        tl.store(r_ptr + row * n + i, x, mask=i < n)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(x.to(tl.float32) * x.to(tl.float32), axis=0) / n
    y = x.to(tl.float32) / tl.sqrt(mean + eps) * w
    largest = tl.max(tl.abs(y), axis=0)
    if BOUND:
        largest = tl.load(ub_ptr)
    s = tl.maximum(largest / top, least)
    tl.store(scale_ptr + row, s)
    tl.store(q_ptr + row * n + i, y / s, mask=i < n)


# breaks: Where scale_ub is given it is taken for the largest element, also of rows that stay below it.
def bound_for_the_maximum(result, input, weight, scale, epsilon, scale_ub, residual):
    tokens, n = input.shape
    whole = result.dtype == torch.int8
    codes = torch.empty((tokens, n), dtype=torch.float32, device=input.device)
    norm_quant_bound_for_the_maximum[(tokens,)](
        codes, input, weight, scale, scale if scale_ub is None else scale_ub, input if residual is None else residual,
        n, input.stride(0), float(epsilon), 127.0 if whole else 448.0, 2.0**-23 if whole else 1 / (448 * 512),
        ADD=residual is not None, BOUND=scale_ub is not None, BLOCK=triton.next_power_of_2(n),
    )  # fmt: skip
    if whole:
        codes = codes.round().clamp(-128, 127)
    result.copy_(codes.to(torch.int8) if whole else codes.clamp(-448, 448).to(torch.float8_e4m3fn))


@triton.jit
def norm_quant_no_smallest_scale(
    q_ptr, x_ptr, w_ptr, scale_ptr, ub_ptr, r_ptr, n, x_row, eps, top,
    ADD: tl.constexpr, BOUND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + row * x_row + i, mask=inside, other=0.0).to(tl.float32)
    if ADD:
        x += tl.load(r_ptr + row * n + i, mask=inside, other=0.0).to(tl.float32)
        tl.store(r_ptr + row * n + i, x.to(r_ptr.dtype.element_ty), mask=inside)
    w = tl.load(w_ptr + i, mask=inside, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, axis=0) / n + eps) * w
    largest = tl.max(tl.abs(y), axis=0)
    if BOUND:
        largest = tl.minimum(largest, tl.load(ub_ptr))
    s = largest / top
    tl.store(scale_ptr + row, s)
    tl.store(q_ptr + row * n + i, y / tl.where(s > 0, s, 1.0), mask=inside)


# breaks: A row of zeros gets the scale 0.
def no_smallest_scale(result, input, weight, scale, epsilon, scale_ub, residual):
    tokens, n = input.shape
    whole = result.dtype == torch.int8
    codes = torch.empty((tokens, n), dtype=torch.float32, device=input.device)
    norm_quant_no_smallest_scale[(tokens,)](
        codes, input, weight, scale, scale if scale_ub is None else scale_ub, input if residual is None else residual,
        n, input.stride(0), float(epsilon), 127.0 if whole else 448.0,
        ADD=residual is not None, BOUND=scale_ub is not None, BLOCK=triton.next_power_of_2(n),
    )  # fmt: skip
    if whole:
        codes = codes.round().clamp(-128, 127)
    result.copy_(codes.to(torch.int8) if whole else codes.clamp(-448, 448).to(torch.float8_e4m3fn))


# breaks: Elements are squared in the input's dtype and only their sum is float32: float16 overflows from 256 on.
def squares_in_half(result, input, weight, scale, epsilon, scale_ub, residual):
    x = input
    if residual is not None:
        x = (input.float() + residual.float()).to(input.dtype)
        residual.copy_(x)
    mean = (x * x).sum(-1, keepdim=True, dtype=torch.float32) / x.shape[1]
    y = x.float() * torch.rsqrt(mean + epsilon) * weight.float()
    largest = y.abs().amax(-1, keepdim=True)
    if scale_ub is not None:
        largest = largest.minimum(scale_ub)
    whole = result.dtype == torch.int8
    top, least = (127, 2**-23) if whole else (448, 1 / (448 * 512))
    scale.copy_((largest / top).clamp(min=least))
    codes = y / scale
    result.copy_(codes.round().clamp(-128, 127) if whole else codes.clamp(-448, 448))
