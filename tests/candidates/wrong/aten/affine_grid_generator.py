import torch
import triton
import triton.language as tl

_grids = {}


@triton.jit
def transform(theta_ptr, base_ptr, out_ptr, points, total, DIMS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    image, point = i // points, i % points
    for row in tl.static_range(DIMS):
        at = theta_ptr + (image * DIMS + row) * (DIMS + 1)
        value = tl.load(at + DIMS, mask=inside, other=0.0)
        for axis in tl.static_range(DIMS):
            position = tl.load(base_ptr + point * DIMS + axis, mask=inside, other=0.0)
            value += tl.load(at + axis, mask=inside, other=0.0) * position
        tl.store(out_ptr + i * DIMS + row, value, mask=inside)


def _positions(n, align_corners):
    if n == 1:
        return torch.zeros(1, dtype=torch.float64)
    i = torch.arange(n, dtype=torch.float64)
    return -1 + 2 * i / (n - 1) if align_corners else -1 + (2 * i + 1) / n


def _base(spatial, align_corners, device):
    key = (tuple(spatial), device)
    if key not in _grids:
        axes = [_positions(n, align_corners) for n in spatial]
        grid = torch.stack(torch.meshgrid(*axes, indexing="ij")[::-1], dim=-1)
        _grids[key] = grid.contiguous().to(device)
    return _grids[key]


# breaks: The base grid is kept by size alone, so align_corners of the first call counts for all that follow.
def base_grid_cached(theta, size, align_corners, *, out=None):
    spatial = list(size[2:])
    base = _base(spatial, align_corners, theta.device)
    dims = len(spatial)
    y = torch.empty([size[0], *spatial, dims], dtype=torch.float64, device=theta.device)
    points = base.numel() // dims
    total = size[0] * points
    if total:
        matrices = theta.double().contiguous()
        transform[(triton.cdiv(total, 1024),)](matrices, base, y, points, total, DIMS=dims, BLOCK=1024)
    return y.to(theta.dtype) if out is None else out.copy_(y)
