"""AWQ: codes of eight neighbouring columns (four for 8 bits) in one int32, interleaved.

``qweight`` is int32 (k, n * bits / 32). Word j of a row holds columns per * j to per * j + per - 1, per = 32 / bits.
For
4 bits its nibbles, the lowest first, are columns 0 2 4 6 1 3 5 7 of those; for 8 bits its bytes are columns 0 2 1 3.
``qzeros`` is packed alike, one row per group. The weight is ``(code - zero) * scale``.
"""

from __future__ import annotations

from typing import Final

import torch

from kgbench.baselines.packing import words

ORDER: Final = {4: (0, 2, 4, 6, 1, 3, 5, 7), 8: (0, 2, 1, 3)}
"""Column of each field of a word, the lowest field first, by number of bits."""


def pack(codes: torch.Tensor, bits: int = 4) -> torch.Tensor:
    """codes: (..., n). Returns int32 (..., n * bits / 32)."""
    order = list(ORDER[bits])
    return words.pack(codes.reshape(*codes.shape[:-1], -1, len(order))[..., order].flatten(-2), bits)


def unpack(packed: torch.Tensor, bits: int = 4) -> torch.Tensor:
    """The codes, int64 (..., n), of int32 (..., n * bits / 32)."""
    order = ORDER[bits]
    place = [order.index(column) for column in range(len(order))]
    fields = words.unpack(packed, bits)
    return fields.reshape(*fields.shape[:-1], -1, len(order))[..., place].flatten(-2)


def weights(qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor) -> torch.Tensor:
    """The 4-bit matrix, (k, n) in the dtype of scales (groups, n)."""
    codes, zeros = unpack(qweight), unpack(qzeros)
    group = codes.shape[0] // scales.shape[0]
    return (codes - zeros.repeat_interleave(group, 0)) * scales.repeat_interleave(group, 0)
