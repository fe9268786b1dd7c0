"""copy_: converted in tiles of two dimensions, that along which self is written in one piece and that along which src
is read in one. What is broadcast is read once and written several times.
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
    x_ptr, out_ptr, down, across, down_tiles, across_tiles, sizes, x_strides, out_strides, x_down, x_across,
    out_down, out_across, copies, out_copy,
    DIMS: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, MIDDLE: tl.constexpr, TRUTH: tl.constexpr,
    PAIR: tl.constexpr,
):  # fmt: skip
    """Tiles of (down, across), each written ``copies`` times; ``sizes`` and ``strides`` are those of all other
    dimensions. MIDDLE: the type by way of which numbers are converted, None where bits move as they are. TRUTH: whether
    a number, or a PAIR of them, is not 0.
    """
    program = tl.program_id(0).to(tl.int64)
    j = program % across_tiles * ACROSS + tl.arange(0, ACROSS)[None, :]
    i = program // across_tiles % down_tiles * DOWN + tl.arange(0, DOWN)[:, None]
    inside = (i < down) & (j < across)
    place = program // across_tiles // down_tiles
    x_at = x_ptr + _start(place, sizes, x_strides, DIMS) + i * x_down + j * x_across
    x = tl.load(x_at, mask=inside, other=0)
    if TRUTH:
        found = x != 0
        if PAIR:
            found |= tl.load(x_at + 1, mask=inside, other=0) != 0
        x = found.to(tl.uint8)
    elif MIDDLE is not None:
        x = x.to(MIDDLE).to(out_ptr.dtype.element_ty)
    out_at = out_ptr + _start(place, sizes, out_strides, DIMS) + i * out_down + j * out_across
    for _ in range(copies):
        tl.store(out_at, x, mask=inside)
        out_at += out_copy


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


def _types(out, x):
    """Both as Triton takes them, and how numbers are converted."""
    if out.dtype == x.dtype:
        plain = _SAME_SIZE[x.element_size()]
        return out.view(plain), x.view(plain), {"MIDDLE": None, "TRUTH": False, "PAIR": False}
    pair = x.is_complex()
    if pair:
        # Its real parts, each of which has the imaginary one behind it.
        x = torch.view_as_real(x.resolve_conj())[..., 0]
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    if out.dtype == torch.bool:
        return out.view(torch.uint8), x, {"MIDDLE": None, "TRUTH": True, "PAIR": pair}
    wide = tl.float64 if out.dtype == torch.float64 else tl.float32
    return out, x, {"MIDDLE": wide if out.is_floating_point() else tl.int64, "TRUTH": False, "PAIR": False}


def _move(out, x):
    """``x`` is broadcast to the shape of ``out``."""
    out, x, types = _types(out, x.expand(out.shape))
    tile = (1024 if out.numel() < 1 << 18 else 8192 if x.element_size() <= 2 else 4096) if x.is_cuda else 1 << 16
    *rest, (across, x_across, out_across) = _merged(x.shape, x.stride(), out.stride())
    copies, out_copy = 1, 0
    if repeated := [each for each in rest if each[1] == 0]:
        size, _, step = repeated[-1]
        # Not where too few programs were left.
        if out.numel() // size >= 264 * tile:
            copies, out_copy = size, step
            rest = [each for each in rest if each is not repeated[-1]]
    # The rows of a tile are neighbours in the result, unless those of another dimension are nearer to each other in x.
    nearer = [each for each in rest if 0 < each[1] < x_across]
    row = min(nearer, key=lambda each: each[1]) if nearer else rest[-1] if rest else (1, 0, 0)
    rest = [each for each in rest if each is not row]
    down, x_down, out_down = row
    sizes, x_strides, out_strides = zip(*rest or [(1, 0, 0)], strict=True)
    # 64 neighbours each way where x and the result have different ones.
    most = 64 if nearer else 512 if down > 1 else tile
    wide = min(triton.next_power_of_2(across), most)
    high = min(triton.next_power_of_2(down), tile // wide)
    wide = min(triton.next_power_of_2(across), tile // high)
    down_tiles, across_tiles = triton.cdiv(down, high), triton.cdiv(across, wide)
    others = out.numel() // (down * across * copies)
    _copy[(others * down_tiles * across_tiles,)](
        x, out, down, across, down_tiles, across_tiles, sizes, x_strides, out_strides, x_down, x_across,
        out_down, out_across, copies, out_copy,
        DIMS=len(sizes), DOWN=high, ACROSS=wide, **types, num_warps=8 if high * wide >= 8192 else 4,
    )  # fmt: skip


def copy_(self, src, non_blocking=False):
    """self, of any strides."""
    if self.numel() == 0:
        return self
    if self.is_complex():
        pairs = torch.view_as_real(self)
        if src.is_complex():
            _move(pairs, torch.view_as_real(src.expand(self.shape).resolve_conj()))
        else:
            _move(pairs[..., 0], src)
            _move(pairs[..., 1], torch.zeros((), dtype=pairs.dtype, device=pairs.device))
    else:
        _move(self, src)
    return self
