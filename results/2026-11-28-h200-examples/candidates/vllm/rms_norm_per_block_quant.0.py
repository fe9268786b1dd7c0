"""rms_norm_per_block_quant: RMS norm of each row, quantized to float8_e4m3fn or int8 by a scale for each group.

A program has a row, seen as (groups, group size). Up to 32768 elements are held at once; a longer row is read twice,
for its norm and for its result. With a residual the sum of both is what is normed, and replaces the residual.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _load(x_ptr, residual_ptr, at, inside, x_column, RESIDUAL: tl.constexpr):
    x = tl.load(x_ptr + at * x_column, mask=inside, other=0.0).to(tl.float32)
    if RESIDUAL:
        x += tl.load(residual_ptr + at, mask=inside, other=0.0).to(tl.float32)
    return x


@triton.jit
def _store(
    x, norm, group, at, inside, live, out_ptr, weight_ptr, weight_stride, scale_ptr, scale_group, residual_ptr, bound,
    FP8: tl.constexpr, BOUNDED: tl.constexpr, RESIDUAL: tl.constexpr,
):  # fmt: skip
    if RESIDUAL:
        tl.store(residual_ptr + at, x.to(residual_ptr.dtype.element_ty), mask=inside)
    y = x * norm * tl.load(weight_ptr + at * weight_stride, mask=inside, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(y), axis=1)
    if BOUNDED:
        scale = tl.minimum(scale, bound)
    # The least scales that vLLM gives: 1 / (448 * 512), and float32's epsilon.
    scale = (
        tl.maximum(scale / 448.0, 1.0 / (448.0 * 512.0)) if FP8 else tl.maximum(scale / 127.0, 1.1920928955078125e-07)
    )
    tl.store(scale_ptr + group.to(tl.int64) * scale_group, scale, mask=live)
    y = y * (1.0 / scale)[:, None]
    if FP8:
        y = tl.minimum(tl.maximum(y, -448.0), 448.0)
        tl.store(out_ptr + at, y.to(tl.float8e4nv).to(tl.uint8, bitcast=True), mask=inside)
    else:
        # Beside 1.5 * 2^23 float32 has no fractions: the sum is rounded to the nearest, of a tie to even.
        y = tl.minimum(tl.maximum(y, -128.0), 127.0)
        tl.store(out_ptr + at, ((y + 12582912.0) - 12582912.0).to(tl.int32).to(tl.int8), mask=inside)


@triton.jit
def _norm_quantize(
    out_ptr, x_ptr, weight_ptr, scale_ptr, bound_ptr, residual_ptr, epsilon, n, groups, x_row, x_column, weight_stride,
    scale_row, scale_group,
    SIZE: tl.constexpr, GROUPS: tl.constexpr, WHOLE: tl.constexpr, FP8: tl.constexpr, BOUNDED: tl.constexpr,
    RESIDUAL: tl.constexpr,
):  # fmt: skip
    """One row, GROUPS groups of SIZE elements at a time; WHOLE: all groups at once."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    out_ptr += row * n
    scale_ptr += row * scale_row
    if RESIDUAL:
        residual_ptr += row * n
    bound = 0.0
    if BOUNDED:
        bound = tl.load(bound_ptr)
    i = tl.arange(0, SIZE)[None, :]
    if WHOLE:
        group = tl.arange(0, GROUPS)
        live = group < groups
        at = group[:, None] * SIZE + i
        inside = live[:, None] & (i >= 0)
        x = _load(x_ptr, residual_ptr, at, inside, x_column, RESIDUAL)
        norm = 1.0 / tl.sqrt_rn(tl.sum(tl.sum(x * x, axis=1), axis=0) / n + epsilon)
        _store(
            x, norm, group, at, inside, live, out_ptr, weight_ptr, weight_stride, scale_ptr, scale_group,
            residual_ptr, bound, FP8, BOUNDED, RESIDUAL,
        )  # fmt: skip
    else:
        squares = tl.zeros([GROUPS, SIZE], dtype=tl.float32)
        for start in range(0, groups, GROUPS):
            group = start + tl.arange(0, GROUPS)
            at = group[:, None] * SIZE + i
            x = _load(x_ptr, residual_ptr, at, (group < groups)[:, None] & (i >= 0), x_column, RESIDUAL)
            squares += x * x
        norm = 1.0 / tl.sqrt_rn(tl.sum(tl.sum(squares, axis=1), axis=0) / n + epsilon)
        for start in range(0, groups, GROUPS):
            group = start + tl.arange(0, GROUPS)
            live = group < groups
            at = group[:, None] * SIZE + i
            inside = live[:, None] & (i >= 0)
            x = _load(x_ptr, residual_ptr, at, inside, x_column, RESIDUAL)
            _store(
                x, norm, group, at, inside, live, out_ptr, weight_ptr, weight_stride, scale_ptr, scale_group,
                residual_ptr, bound, FP8, BOUNDED, RESIDUAL,
            )  # fmt: skip


def rms_norm_per_block_quant(
    result, input, weight, scale, epsilon, scale_ub, residual, group_size, is_scale_transposed
):
    """result, residual: (rows, n), dense; input: (rows, n); scale: (rows, groups), at any strides."""
    rows, n = input.shape
    if result.numel() == 0:
        return
    size = int(group_size)
    groups = n // size
    fp8 = result.dtype != torch.int8
    held = triton.next_power_of_2(groups)
    whole = held * size <= 32768
    if not whole:
        held = 8192 // size
    block = held * size
    # Fewer elements for a thread where there are not more rows than two for each of 132 multiprocessors.
    warps = max(1, min(32 if block > 16384 else 16, block // (32 * (16 if rows <= 264 else 32))))
    _norm_quantize[(rows,)](
        result.view(torch.uint8) if fp8 else result, input, weight, scale, scale_ub, residual, float(epsilon), n,
        groups, input.stride(0), input.stride(1), weight.stride(0), scale.stride(0), scale.stride(1),
        SIZE=size, GROUPS=held, WHOLE=whole, FP8=fp8, BOUNDED=scale_ub is not None, RESIDUAL=residual is not None,
        num_warps=warps,
    )  # fmt: skip
