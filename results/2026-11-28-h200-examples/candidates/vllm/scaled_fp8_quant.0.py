"""scaled_fp8_quant: x / scale as float8_e4m3fn, with given scales, one scale of the whole tensor, or one of each row.

Given scales are one, or one for each block of rows and columns. The tensor's own scale takes two kernels: the largest
magnitudes of parts, then all of x, last rows first, since those are still in the cache.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _code(x):
    x = tl.minimum(tl.maximum(x, -448.0), 448.0)
    return x.to(tl.float8e4nv).to(tl.uint8, bitcast=True)


@triton.jit
def _factors(scale):
    """Two factors that divide by ``scale``, so that 1 / scale neither overflows nor loses digits."""
    small, large = 18446744073709551616.0, 5.421010862427522e-20  # 2^64 and 2^-64
    first = tl.where(scale < 1e-30, small, tl.where(scale > 1e30, large, 1.0))
    return first.to(tl.float32), (1.0 / (scale * first)).to(tl.float32)


@triton.jit
def _static(
    out_ptr, x_ptr, scale_ptr, n, blocks, x_row, out_row, rows_per_scale, per_scale, scales, scale_row, scale_column,
    ONE: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """BLOCK columns of a row. ONE: a scale for the row; SIZE > 0: a scale for each SIZE columns, a power of two."""
    row = tl.program_id(0) // blocks
    first = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK
    scale_ptr += (row // rows_per_scale).to(tl.int64) * scale_row
    x_ptr += row.to(tl.int64) * x_row
    out_ptr += row.to(tl.int64) * out_row
    if SIZE > 0:
        group = first // SIZE + tl.arange(0, BLOCK // SIZE)
        live = group < scales
        i = group[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
        inside = live[:, None] & (i >= 0)
        scale = tl.load(scale_ptr + group * scale_column, mask=live, other=1.0)[:, None]
    else:
        i = first + tl.arange(0, BLOCK)
        inside = i < n
        if ONE:
            scale = tl.load(scale_ptr)
        else:
            scale = tl.load(scale_ptr + i // per_scale * scale_column, mask=inside, other=1.0)
    x = tl.load(x_ptr + i, mask=inside, other=0.0).to(tl.float32)
    first, second = _factors(scale)
    tl.store(out_ptr + i, _code(x * first * second), mask=inside)


@triton.jit
def _largest(x_ptr, part_ptr, n, blocks, items, programs, x_row, BLOCK: tl.constexpr):
    """The largest magnitude of every ``programs``-th block of BLOCK columns of a row."""
    most = tl.zeros([BLOCK], dtype=tl.float32)
    for item in range(tl.program_id(0), items, programs):
        i = (item % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + (item // blocks).to(tl.int64) * x_row + i, mask=i < n, other=0.0).to(tl.float32)
        most = tl.maximum(most, tl.abs(x))
    tl.store(part_ptr + tl.program_id(0), tl.max(most, axis=0))


@triton.jit
def _dynamic(
    out_ptr, x_ptr, scale_ptr, part_ptr, n, blocks, items, programs, parts, x_row, out_row,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    part = tl.arange(0, PARTS)
    scale = tl.max(tl.load(part_ptr + part, mask=part < parts, other=0.0), axis=0) / 448.0
    if tl.program_id(0) == 0:
        tl.store(scale_ptr, scale)
    first, second = _factors(scale)
    for turn in range(tl.program_id(0), items, programs):
        item = items - 1 - turn
        row = (item // blocks).to(tl.int64)
        i = (item % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_row + i, mask=i < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * out_row + i, _code(x * first * second), mask=i < n)


@triton.jit
def _per_row(
    out_ptr, x_ptr, scale_ptr, bound_ptr, n, x_row, out_row, scale_row,
    WHOLE: tl.constexpr, BOUNDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row; WHOLE: it is one block, and read only once."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    out_ptr += row * out_row
    i = tl.arange(0, BLOCK)
    # Beyond the last block a counter of 32 bits would go on at negative places.
    n = tl.full((), n, tl.int64)
    if WHOLE:
        x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        most = tl.max(tl.abs(x), axis=0)
    else:
        largest = tl.zeros([BLOCK], dtype=tl.float32)
        for start in range(0, n, BLOCK):
            part = tl.load(x_ptr + start + i, mask=start + i < n, other=0.0).to(tl.float32)
            largest = tl.maximum(largest, tl.abs(part))
        most = tl.max(largest, axis=0)
    if BOUNDED:
        most = tl.minimum(most, tl.load(bound_ptr))
    # The least scale that vLLM gives.
    scale = tl.maximum(most / 448.0, 1.0 / (448.0 * 512.0))
    tl.store(scale_ptr + row * scale_row, scale)
    if WHOLE:
        tl.store(out_ptr + i, _code(x * (1.0 / scale)), mask=i < n)
    else:
        for start in range(0, n, BLOCK):
            part = tl.load(x_ptr + start + i, mask=start + i < n, other=0.0).to(tl.float32)
            tl.store(out_ptr + start + i, _code(part * (1.0 / scale)), mask=start + i < n)


def _block(rows, n):
    """Columns of a block: many where there is much to do and they divide a row."""
    many = [size for size in (4096, 2048) if n % size == 0] if rows * n >= 1 << 22 else []
    return max(32, min([*many, 1024][0], triton.next_power_of_2(n)))


def scaled_fp8_quant_static(result, input, scale):
    """result, input: (rows, n), rows at any distance; scale: one, (row blocks,) or (row blocks, column blocks)."""
    rows, n = input.shape
    if result.numel() == 0:
        return
    down = 1 if scale.numel() == 1 else scale.shape[0]
    across = scale.shape[1] if scale.numel() > 1 and scale.dim() > 1 else 1
    scale_row = scale.stride(0) if scale.numel() > 1 else 0
    per_scale = n // across
    size = per_scale if across > 1 and 16 <= per_scale <= 1024 and per_scale & (per_scale - 1) == 0 else 0
    block = max(_block(rows, n), size)
    blocks = triton.cdiv(n, block)
    _static[(rows * blocks,)](
        result.view(torch.uint8), input, scale, n, blocks, input.stride(0), result.stride(0), rows // down, per_scale,
        across, scale_row, scale.stride(1) if across > 1 else 0,
        ONE=across == 1, SIZE=size, BLOCK=block, num_warps=max(1, min(4, block // 512)),
    )  # fmt: skip


def scaled_fp8_quant_dynamic(result, input, scale):
    """result, input: (rows, n), rows at any distance; scale: one float32, written."""
    rows, n = input.shape
    if result.numel() == 0:
        return
    block = _block(rows, n)
    blocks = triton.cdiv(n, block)
    items = rows * blocks
    parts = min(items, 1024)
    most = torch.empty((parts,), dtype=torch.float32, device=input.device)
    warps = max(1, min(4, block // 512))
    _largest[(parts,)](input, most, n, blocks, items, parts, input.stride(0), BLOCK=block, num_warps=warps)
    programs = min(items, 2048)
    _dynamic[(programs,)](
        result.view(torch.uint8), input, scale, most, n, blocks, items, programs, parts, input.stride(0),
        result.stride(0), PARTS=max(32, triton.next_power_of_2(parts)), BLOCK=block, num_warps=warps,
    )  # fmt: skip


def scaled_fp8_quant_per_token(result, input, scale, scale_ub=None):
    """result, input: (rows, n), rows at any distance; scale: (rows, 1), written; scale_ub: most that is scaled to."""
    rows, n = input.shape
    if result.numel() == 0:
        return
    whole = n <= 16384
    block = max(32, triton.next_power_of_2(n)) if whole else 8192
    warps = max(1, min(16, block // (32 * (16 if rows <= 264 else 32)))) if whole else 8
    _per_row[(rows,)](
        result.view(torch.uint8), input, scale, scale_ub, n, input.stride(0), result.stride(0), scale.stride(0),
        WHOLE=whole, BOUNDED=scale_ub is not None, BLOCK=block, num_warps=warps,
    )  # fmt: skip
