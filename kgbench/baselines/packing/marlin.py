"""Marlin: 4- and 8-bit codes in the order in which tensor cores take them, and the scales that go with it.

Weights are int32 (k / 16, n * bits / 2), a mere stretch of words: the matrix is cut into tiles of 16 rows and 64
columns (32 and 32 where the activations have 8 bits), tile after tile along n and then along k. Within a tile, word
``4 t + w`` (4 bits) or words ``8 t + 2 w`` and ``8 t + 2 w + 1`` (8 bits) belong to thread t < 32 of warp w < 4, which
holds eight codes v0 … v7:

- 16-bit activations: v0 … v3 are rows r, r + 1, r + 8, r + 9 with r = 2 (t % 4) of column 16 w + t // 4; v4 … v7 the
  same rows of column 16 w + t // 4 + 8. 4 bits: nibbles from the lowest are v0 v2 v4 v6 v1 v3 v5 v7. 8 bits: bytes of
  the first word are v0 v2 v1 v3, of the second v4 v6 v5 v7.
- 8-bit activations: v0 … v3 are rows r to r + 3 with r = 4 (t % 4) of column 8 w + t // 4, v4 … v7 rows r + 16 to r +
  19 of it. 4 bits: nibbles are v0 v4 v1 v5 v2 v6 v3 v7. 8 bits: bytes are v0 v1 v2 v3 and v4 v5 v6 v7.

Scales of several groups: within every 64 columns, place 8 i + j holds column i + 8 j. A single row of scales, and a
bias: within every 32 columns, place 8 i + j holds column 2 i + (0, 1, 8, 9, 16, 17, 24, 25)[j]. Zero points: ordered as
scales of several groups, then the eight fields of a word are places 0 2 4 6 1 3 5 7 of its eight (8 bits: 0 2 1 3), the
lowest first.

2:4 sparse: of every four codes of a column that follow one another two are stored, as a matrix of k / 2 rows in tiles
of 16 rows and 64 columns. Thread t holds words 4 t + c (4 bits) or 8 t + 2 c and 8 t + 2 c + 1 (8 bits), c < 4: v0 … v3
are rows r, r + 1, r + 8, r + 9 with r = 2 (t % 4) of column 16 (t // 8) + 8 ((t // 4) % 2) + c, v4 … v7 the same rows
of that column + 4. The fields of a word are ordered as above. Which two are stored is in ``meta``, int16 (k / 32, 2 n),
see ``pack_meta``. Scales of several groups: within every 8 columns, place j holds column (0, 4, 1, 5, 2, 6, 3, 7)[j]; a
single row as it is.
"""

from __future__ import annotations

import functools
from typing import Final

import torch

from kgbench.baselines.packing import words

PLAIN, EIGHT_BIT, SPARSE = "16-bit activations", "8-bit activations", "2:4 sparse"
_FIELDS: Final = {
    (PLAIN, 4): (0, 2, 4, 6, 1, 3, 5, 7),
    (PLAIN, 8): (0, 2, 1, 3, 4, 6, 5, 7),
    (EIGHT_BIT, 4): (0, 4, 1, 5, 2, 6, 3, 7),
    (EIGHT_BIT, 8): (0, 1, 2, 3, 4, 5, 6, 7),
    (SPARSE, 4): (0, 2, 4, 6, 1, 3, 5, 7),
    (SPARSE, 8): (0, 2, 1, 3, 4, 6, 5, 7),
}
_INTERLEAVE: Final = {4: (0, 2, 4, 6, 1, 3, 5, 7), 8: (0, 2, 1, 3)}
GROUP_SCALES: Final = tuple(i + 8 * j for i in range(8) for j in range(8))
SINGLE_SCALES: Final = tuple(2 * i + j for i in range(4) for j in (0, 1, 8, 9, 16, 17, 24, 25))
SPARSE_SCALES: Final = (0, 4, 1, 5, 2, 6, 3, 7)


def pack(codes: torch.Tensor, bits: int, order: str = PLAIN) -> torch.Tensor:
    """codes: (k, n). Returns int32 (k / 16, n * bits / 2)."""
    k, n = codes.shape
    rows, columns = _tile(order)
    tiles = codes.reshape(k // rows, rows, n // columns, columns).permute(0, 2, 1, 3).reshape(-1, rows * columns)
    return words.pack(tiles[:, _order(bits, order)], bits).reshape(k // 16, -1)


def unpack(packed: torch.Tensor, bits: int, order: str = PLAIN) -> torch.Tensor:
    """The codes, int64 (k, n), of int32 (k / 16, n * bits / 2)."""
    k, n = packed.shape[0] * 16, packed.shape[1] * 2 // bits
    rows, columns = _tile(order)
    fields = words.unpack(packed.reshape(-1, rows * columns * bits // 32), bits)
    tiles = torch.empty_like(fields)
    tiles[:, _order(bits, order)] = fields
    return tiles.reshape(k // rows, n // columns, rows, columns).permute(0, 2, 1, 3).reshape(k, n)


def permute_columns(values: torch.Tensor, order: tuple[int, ...]) -> torch.Tensor:
    """values: (..., n): within every ``len(order)`` columns, place i takes column order[i]."""
    return values.reshape(*values.shape[:-1], -1, len(order))[..., list(order)].reshape(values.shape)


def restore_columns(values: torch.Tensor, order: tuple[int, ...]) -> torch.Tensor:
    """The inverse of ``permute_columns``."""
    return permute_columns(values, tuple(order.index(column) for column in range(len(order))))


def scale_order(groups: int, sparse: bool = False) -> tuple[int, ...]:
    """The order of the columns of ``groups`` rows of scales."""
    if sparse:
        return SPARSE_SCALES if groups > 1 else (0,)
    return GROUP_SCALES if groups > 1 else SINGLE_SCALES


def pack_zeros(zeros: torch.Tensor, bits: int) -> torch.Tensor:
    """zeros: (groups, n). Returns int32 (groups, n * bits / 32)."""
    return words.pack(permute_columns(permute_columns(zeros, GROUP_SCALES), _INTERLEAVE[bits]), bits)


def unpack_zeros(packed: torch.Tensor, bits: int) -> torch.Tensor:
    """The zero points, int64 (groups, n), of int32 (groups, n * bits / 32)."""
    return restore_columns(restore_columns(words.unpack(packed, bits), _INTERLEAVE[bits]), GROUP_SCALES)


def pack_meta(kept: torch.Tensor) -> torch.Tensor:
    """kept: (k / 4, 2, n), the two rows of every four that are stored, the lower first. Returns int16 (k / 32, 2 n).

    Two bits each: of column j, the rows of four quadruples make one int16, the first quadruple's lower row in the
    lowest bits. That int16, for quadruples 4 c to 4 c + 3 of column j = 64 g + h, has a place p and a column d:
    p = 64 g + 2 (h % 2) + (h % 8) // 4 + 32 ((h % 4) // 2) + 4 (h // 8), d = c; where p is even and d odd p becomes p +
    1 and d becomes d - 1, where p is odd and d even the other way round. It lies at ``2 n (d // 2) + 2 p + d % 2``.
    """
    n = kept.shape[-1]
    fields = kept.to(torch.int64).reshape(-1, 8, n)
    shift = torch.arange(0, 16, 2, device=kept.device)[:, None]
    entries = (fields << shift).sum(1)
    packed = torch.empty(entries.numel(), dtype=torch.int64, device=kept.device)
    packed[_meta_places(n, entries.shape[0], kept.device)] = entries.reshape(-1)
    return torch.where(packed >= 1 << 15, packed - (1 << 16), packed).to(torch.int16).reshape(-1, 2 * n)


def unpack_meta(meta: torch.Tensor) -> torch.Tensor:
    """The rows that are stored, int64 (k / 4, 2, n), of int16 (k / 32, 2 n)."""
    n = meta.shape[1] // 2
    entries = meta.reshape(-1)[_meta_places(n, meta.shape[0] * 2, meta.device)].to(torch.int64).reshape(-1, 1, n)
    shift = torch.arange(0, 16, 2, device=meta.device)[:, None]
    return ((entries >> shift) & 3).reshape(-1, 2, n)


def spread(compressed: torch.Tensor, kept: torch.Tensor, filler: int) -> torch.Tensor:
    """compressed: (k / 2, n), kept: (k / 4, 2, n). Returns (k, n) with ``filler`` where nothing is stored."""
    quads, _, n = kept.shape
    dense = torch.full((quads, 4, n), filler, dtype=compressed.dtype, device=compressed.device)
    return dense.scatter_(1, kept, compressed.reshape(quads, 2, n)).reshape(-1, n)


def _meta_places(n: int, columns: int, device: torch.device) -> torch.Tensor:
    """int64 (columns * n,): where the entry of (c, j), c-major, lies."""
    j = torch.arange(n, device=device)
    h = j % 64
    place = j - h + 2 * (h % 2) + (h % 8) // 4 + 32 * ((h % 4) // 2) + 4 * (h // 8)
    place = place.expand(columns, n)
    column = torch.arange(columns, device=device)[:, None].expand(columns, n)
    step = ((place % 2 == 0) & (column % 2 == 1)).long() - ((place % 2 == 1) & (column % 2 == 0)).long()
    place, column = place + step, column - step
    return (2 * n * (column // 2) + 2 * place + column % 2).reshape(-1)


def _tile(order: str) -> tuple[int, int]:
    return (32, 32) if order == EIGHT_BIT else (16, 64)


@functools.cache
def _order(bits: int, order: str) -> list[int]:
    """The place in a tile, row-major, of each field of the tile's words."""
    columns = _tile(order)[1]
    places = []
    for thread in range(32):
        for warp in range(4):
            held = [row * columns + column for row, column in _held(thread, warp, order)]
            places += [held[value] for value in _FIELDS[order, bits]]
    return places


def _held(thread: int, warp: int, order: str) -> list[tuple[int, int]]:
    """Row and column in the tile of the eight codes of one thread."""
    if order == EIGHT_BIT:
        first, column = 4 * (thread % 4), 8 * warp + thread // 4
        return [(first + row + below, column) for below in (0, 16) for row in range(4)]
    rows = [2 * (thread % 4) + row for row in (0, 1, 8, 9)]
    if order == SPARSE:
        column, step = 16 * (thread // 8) + 8 * (thread // 4 % 2) + warp, 4
    else:
        column, step = 16 * warp + thread // 4, 8
    return [(row, column + right) for right in (0, step) for row in rows]
