"""clone: a copy in tiles of two dimensions, that along which the result is written in one piece and that along
which self is read in one.

Values move as integers of their size.
"""

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def _start(place, sizes, strides, DIMS: tl.constexpr):
    """Where a tile's other dimensions begin."""
    at = place * 0
    for back in tl.static_range(DIMS):
        at += place % sizes[DIMS - 1 - back] * strides[DIMS - 1 - back]
        place = place // sizes[DIMS - 1 - back]
    return at


@triton.jit
def _copy(
    x_ptr, out_ptr, down, across, down_tiles, across_tiles, sizes, x_strides, out_strides, x_down, x_across, out_down,
    DIMS: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr,
):  # fmt: skip
    """Tiles of (down, across); ``sizes`` and ``strides`` are those of all other dimensions."""
    program = tl.program_id(0).to(tl.int64)
    j = program % across_tiles * ACROSS + tl.arange(0, ACROSS)[None, :]
    i = program // across_tiles % down_tiles * DOWN + tl.arange(0, DOWN)[:, None]
    inside = (i < down) & (j < across)
    place = program // across_tiles // down_tiles
    x_at = _start(place, sizes, x_strides, DIMS) + i * x_down + j * x_across
    out_at = _start(place, sizes, out_strides, DIMS) + i * out_down + j
    tl.store(out_ptr + out_at, tl.load(x_ptr + x_at, mask=inside), mask=inside)


def _merged(shape, x_strides, out_strides):
    """(size, stride in x, stride in out) by dimension, outermost first; neighbours are one where both allow it."""
    dims = [each for each in zip(shape, x_strides, out_strides, strict=True) if each[0] > 1]
    merged = []
    for size, x, out in sorted(dims, key=lambda each: each[2], reverse=True):
        if merged and merged[-1][1:] == (size * x, size * out):
            merged[-1] = (size * merged[-1][0], x, out)
        else:
            merged.append((size, x, out))
    return merged or [(1, 1, 1)]


def _fill(out, x):
    """The values of ``x`` into ``out``, which has no gaps."""
    if x.element_size() == 16:
        x, out = torch.view_as_real(x), torch.view_as_real(out)
    plain = _SAME_SIZE[x.element_size()]
    *rest, (across, x_across, _) = _merged(x.shape, x.stride(), out.stride())
    # The rows of a tile are neighbours in the result, unless those of another dimension are nearer to each other in x.
    nearer = [each for each in rest if 0 < each[1] < x_across]
    row = min(nearer, key=lambda each: each[1]) if nearer else rest[-1] if rest else (1, 0, 0)
    rest = [each for each in rest if each is not row]
    down, x_down, out_down = row
    sizes, x_strides, out_strides = zip(*rest or [(1, 0, 0)], strict=True)
    tile = (1024 if out.numel() < 1 << 18 else 8192 if x.element_size() <= 2 else 4096) if x.is_cuda else 1 << 16
    # 64 neighbours each way where x and the result have different ones.
    most = 64 if nearer else 512 if down > 1 else tile
    wide = min(triton.next_power_of_2(across), most)
    high = min(triton.next_power_of_2(down), tile // wide)
    wide = min(triton.next_power_of_2(across), tile // high)
    down_tiles, across_tiles = triton.cdiv(down, high), triton.cdiv(across, wide)
    others = out.numel() // (down * across)
    _copy[(others * down_tiles * across_tiles,)](
        x.view(plain), out.view(plain), down, across, down_tiles, across_tiles, sizes, x_strides, out_strides,
        x_down, x_across, out_down,
        DIMS=len(sizes), DOWN=high, ACROSS=wide, num_warps=8 if high * wide >= 8192 else 4,
    )  # fmt: skip
    return out


def clone(self, *, memory_format=None):
    """A new tensor; without a format in self's memory order where that has no gaps."""
    x = self.resolve_conj()
    out = torch.empty_like(x, memory_format=memory_format or torch.preserve_format)
    return _fill(out, x) if out.numel() else out
