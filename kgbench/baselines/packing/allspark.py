"""AllSpark: uint8 codes in the order N32K16, and the scales and zero points in the order that goes with it.

The matrix (k, n) is padded with columns to a multiple of 32 and stored as uint8 (n_padded, k), as a mere stretch of
bytes. With column j = 32 a + 8 p + q (p < 4, q < 8) and row i = 16 b + 8 s + 2 t + u (s < 2, t < 4, u < 2) the code
lies at byte ``(8 a + q) * 4 k + 64 b + 16 t + 4 p + 2 s + u``. Column j's scale lies at 32 a + 4 q + p. The weight is
``(code - 128 - zero) * scale``; without zero points zero is 0.
"""

from __future__ import annotations

import torch


def pack(codes: torch.Tensor) -> torch.Tensor:
    """codes: (k, n), k a multiple of 16. Returns uint8 (n_padded, k); padding is 0."""
    k, n = codes.shape
    padded = torch.zeros(k, round_up_32(n), dtype=torch.uint8, device=codes.device)
    padded[:, :n] = codes.to(torch.uint8)
    # k: b s t u, n: a p q -> a q b t p s u
    split = padded.reshape(k // 16, 2, 4, 2, -1, 4, 8)
    return split.permute(4, 6, 0, 2, 5, 1, 3).reshape(-1, k).contiguous()


def unpack(packed: torch.Tensor, n: int) -> torch.Tensor:
    """The codes, int64 (k, n), of uint8 (n_padded, k)."""
    k = packed.shape[1]
    split = packed.reshape(-1, 8, k // 16, 4, 4, 2, 2)
    return split.permute(2, 5, 3, 6, 0, 4, 1).reshape(k, -1)[:, :n].to(torch.int64)


def pack_columns(values: torch.Tensor) -> torch.Tensor:
    """values: (1, n), scales or zero points. Returns (1, n_padded); padding is 0."""
    padded = values.new_zeros(1, round_up_32(values.shape[1]))
    padded[:, : values.shape[1]] = values
    return padded.reshape(-1, 4, 8).mT.reshape(1, -1)


def unpack_columns(packed: torch.Tensor, n: int) -> torch.Tensor:
    """The values (1, n) of (1, n_padded)."""
    return packed.reshape(-1, 8, 4).mT.reshape(1, -1)[:, :n]


def round_up_32(n: int) -> int:
    return (n + 31) // 32 * 32
