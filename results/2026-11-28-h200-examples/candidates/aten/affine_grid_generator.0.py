"""affine_grid_generator: tiles of image rows by (pixel, coordinate) pairs of a row; theta is read once for a tile.

Positions and products are float32 (float64 for float64), rounded once when stored.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _position(i, n, CORNERS: tl.constexpr, WIDE: tl.constexpr):
    """Where pixel ``i`` of ``n`` lies between -1 and 1."""
    if CORNERS:
        numerator, divisor = 2 * i - (n - 1), tl.maximum(i * 0 + (n - 1), 1)
    else:
        numerator, divisor = 2 * i + 1 - n, i * 0 + n
    a, b = numerator.to(WIDE), divisor.to(WIDE)
    return a / b if tl.float64 == WIDE else tl.div_rn(a, b)


@triton.jit
def _grid(
    theta_ptr, out_ptr, image_step, row_step, column_step, depth, height, width, rows, pairs, row_tiles, pair_tiles,
    COORDINATES: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr, CORNERS: tl.constexpr, WIDE: tl.constexpr,
    INDEX: tl.constexpr,
):  # fmt: skip
    """out is (images, depth * height, width * COORDINATES), row-major."""
    program = tl.program_id(0)
    image = (program // pair_tiles // row_tiles).to(tl.int64)
    row = (program // pair_tiles % row_tiles).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    pair = (program % pair_tiles).to(INDEX) * PAIRS + tl.arange(0, PAIRS)[None, :]
    coordinate = pair % COORDINATES
    at = theta_ptr + image * image_step + coordinate.to(tl.int64) * row_step
    inside = pair < pairs
    column_step = tl.cast(column_step, tl.int64)
    by_x = tl.load(at, mask=inside, other=0.0).to(WIDE)
    by_y = tl.load(at + column_step, mask=inside, other=0.0).to(WIDE)
    last = tl.load(at + COORDINATES * column_step, mask=inside, other=0.0).to(WIDE)
    value = by_x * _position(pair // COORDINATES, width, CORNERS, WIDE) + last
    value = value + by_y * _position(row % height, height, CORNERS, WIDE)
    if COORDINATES == 3:
        by_z = tl.load(at + 2 * column_step, mask=inside, other=0.0).to(WIDE)
        value = value + by_z * _position(row // height, depth, CORNERS, WIDE)
    out_at = (image * rows + row) * pairs + pair
    tl.store(out_ptr + out_at, value.to(out_ptr.dtype.element_ty), mask=inside & (row < rows))


def _fill(out, theta, align_corners):
    """``out``, row-major, (N, H, W, 2) or (N, D, H, W, 3)."""
    if out.numel() == 0:
        return out
    images, *space, coordinates = out.shape
    depth, height, width = space if coordinates == 3 else (1, *space)
    pairs, rows = width * coordinates, depth * height
    most = (4096 if out.numel() >= 1 << 22 else 512) if out.is_cuda else 1 << 14
    # A row's tiles have no rest where a power of 2 divides its pairs.
    whole = pairs & -pairs
    wide = min(whole if whole >= 128 else triton.next_power_of_2(pairs), 512)
    high = max(1, min(most // wide, triton.next_power_of_2(rows)))
    row_tiles, pair_tiles = triton.cdiv(rows, high), triton.cdiv(pairs, wide)
    _grid[(images * row_tiles * pair_tiles,)](
        theta, out, *theta.stride(), depth, height, width, rows, pairs, row_tiles, pair_tiles,
        COORDINATES=coordinates, ROWS=high, PAIRS=wide, CORNERS=bool(align_corners),
        WIDE=tl.float64 if theta.dtype == torch.float64 else tl.float32,
        # Positions are computed from twice a pixel's number.
        INDEX=tl.int64 if max(pairs, rows) >= 1 << 29 else tl.int32, num_warps=4 if high * wide >= 2048 else 2,
    )  # fmt: skip
    return out


def affine_grid_generator(theta, size, align_corners):
    """A new tensor; ``size`` is (N, C, H, W) or (N, C, D, H, W)."""
    shape = (size[0], *size[2:], len(size) - 2)
    return _fill(torch.empty(shape, dtype=theta.dtype, device=theta.device), theta, align_corners)


def affine_grid_generator_out(theta, size, align_corners, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.is_contiguous():
        return _fill(out, theta, align_corners)
    return out.copy_(affine_grid_generator(theta, size, align_corners))
