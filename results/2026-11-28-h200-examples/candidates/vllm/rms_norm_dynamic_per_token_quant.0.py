"""rms_norm_dynamic_per_token_quant: RMS norm of each row, quantized to float8_e4m3fn or int8 by a scale of its own.

A row is held whole up to 32768 elements; a longer one is read three times: for its norm, its scale and its result. With
a residual the sum of both is what is normed, and replaces the residual.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _load(x_ptr, residual_ptr, row, i, inside, x_row, n, RESIDUAL: tl.constexpr):
    x = tl.load(x_ptr + row * x_row + i, mask=inside, other=0.0).to(tl.float32)
    if RESIDUAL:
        x += tl.load(residual_ptr + row * n + i, mask=inside, other=0.0).to(tl.float32)
    return x


@triton.jit
def _scale(largest, bound_ptr, BOUNDED: tl.constexpr, FP8: tl.constexpr):
    if BOUNDED:
        largest = tl.minimum(largest, tl.load(bound_ptr))
    # The least scales that vLLM gives: 1 / (448 * 512), and float32's epsilon.
    if FP8:
        return tl.maximum(tl.div_rn(largest, 448.0), 4.359654017857143e-06)
    else:
        return tl.maximum(tl.div_rn(largest, 127.0), 1.1920928955078125e-07)


@triton.jit
def _quantized(x, FP8: tl.constexpr):
    if FP8:
        return tl.minimum(tl.maximum(x, -448.0), 448.0).to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    else:
        # Beside 1.5 * 2^23 float32 has no fractions: the sum is rounded to even, and its bits count from there.
        x = tl.minimum(tl.maximum(x, -128.0), 127.0)
        return ((x + 12582912.0).to(tl.int32, bitcast=True) - 0x4B400000).to(tl.int8)


@triton.jit
def _whole(
    out_ptr, x_ptr, weight_ptr, scale_ptr, residual_ptr, bound_ptr, x_row, scale_row, n, epsilon,
    RESIDUAL: tl.constexpr, BOUNDED: tl.constexpr, FP8: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = _load(x_ptr, residual_ptr, row, i, i < n, x_row, n, RESIDUAL)
    if RESIDUAL:
        tl.store(residual_ptr + row * n + i, x.to(residual_ptr.dtype.element_ty), mask=i < n)
    norm = tl.div_rn(1.0, tl.sqrt_rn(tl.sum(x * x, axis=0) / n + epsilon))
    y = x * norm * tl.load(weight_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    scale = _scale(tl.max(tl.abs(y), axis=0), bound_ptr, BOUNDED, FP8)
    tl.store(scale_ptr + row * scale_row, scale)
    tl.store(out_ptr + row * n + i, _quantized(y * tl.div_rn(1.0, scale), FP8), mask=i < n)


@triton.jit
def _in_blocks(
    out_ptr, x_ptr, weight_ptr, scale_ptr, residual_ptr, bound_ptr, x_row, scale_row, n, epsilon,
    RESIDUAL: tl.constexpr, BOUNDED: tl.constexpr, FP8: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = _load(x_ptr, residual_ptr, row, i, i < n, x_row, n, RESIDUAL)
        squares += x * x
    norm = tl.div_rn(1.0, tl.sqrt_rn(tl.sum(squares, axis=0) / n + epsilon))
    largest = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = _load(x_ptr, residual_ptr, row, i, i < n, x_row, n, RESIDUAL)
        weight = tl.load(weight_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(x * norm * weight))
    scale = _scale(tl.max(largest, axis=0), bound_ptr, BOUNDED, FP8)
    tl.store(scale_ptr + row * scale_row, scale)
    factor = tl.div_rn(1.0, scale)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = _load(x_ptr, residual_ptr, row, i, i < n, x_row, n, RESIDUAL)
        if RESIDUAL:
            tl.store(residual_ptr + row * n + i, x.to(residual_ptr.dtype.element_ty), mask=i < n)
        weight = tl.load(weight_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n + i, _quantized(x * norm * weight * factor, FP8), mask=i < n)


def rms_norm_dynamic_per_token_quant(result, input, weight, scale, epsilon, scale_ub, residual):
    """result, residual: (rows, n), dense; input: (rows, n); scale: (rows, 1); scale_ub: the most that is scaled to."""
    rows, n = input.shape
    if rows == 0 or n == 0:
        return
    fp8 = result.dtype != torch.int8
    block = triton.next_power_of_2(n)
    whole = block <= 32768
    warps = max(1, min(16 if block <= 16384 else 32, block // 512)) if whole else 16
    (_whole if whole else _in_blocks)[(rows,)](
        result.view(torch.uint8) if fp8 else result, input, weight, scale, residual, scale_ub, input.stride(0),
        scale.stride(0), n, float(epsilon), RESIDUAL=residual is not None, BOUNDED=scale_ub is not None, FP8=fp8,
        BLOCK=block if whole else 8192, num_warps=warps,
    )  # fmt: skip
