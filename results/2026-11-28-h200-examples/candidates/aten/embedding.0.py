"""embedding: rows of weight by their index, in tiles of several rows and a piece of their columns.

Strides are taken as they are. Values move as integers of their size.
"""

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def _rows(
    weight_ptr, index_ptr, out_ptr, rows, columns, tiles, row_step, column_step, sizes, strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """out is (rows, columns), row-major; the indices have ``sizes`` and ``strides``."""
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = (tl.program_id(0) % tiles).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    rest = row
    at = tl.zeros_like(row)
    for back in tl.static_range(DIMS):
        at += rest % sizes[DIMS - 1 - back] * strides[DIMS - 1 - back]
        rest = rest // sizes[DIMS - 1 - back]
    chosen = tl.load(index_ptr + at, mask=row < rows, other=0).to(tl.int64)
    x = tl.load(weight_ptr + chosen[:, None] * row_step + (column * column_step)[None, :], mask=inside)
    tl.store(out_ptr + row[:, None] * columns + column[None, :], x, mask=inside)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """weight[indices], row-major. The other arguments are about gradients."""
    columns = weight.shape[1]
    out = torch.empty((*indices.shape, columns), dtype=weight.dtype, device=weight.device)
    if out.numel() == 0:
        return out
    plain = _SAME_SIZE[weight.element_size()]
    # A tensor without gaps is one dimension.
    at = indices.view(-1) if indices.is_contiguous() else indices
    tile = max(1024, min(4096, 8192 // out.element_size())) if weight.is_cuda else 1 << 16
    wide = min(triton.next_power_of_2(columns), 1024)
    high = min(triton.next_power_of_2(indices.numel()), tile // wide)
    tiles = triton.cdiv(columns, wide)
    _rows[(triton.cdiv(indices.numel(), high) * tiles,)](
        weight.view(plain), at, out.view(plain), indices.numel(), columns, tiles, *weight.stride(),
        tuple(at.shape), at.stride(), DIMS=at.ndim, ROWS=high, COLUMNS=wide,
    )  # fmt: skip
    return out
