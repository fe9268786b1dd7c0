"""Codes in 32-bit words, the first code in the lowest bits."""

from __future__ import annotations

import torch


def pack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """codes: (..., n) of ``bits`` bits, which divide 32. Returns int32 (..., n * bits / 32)."""
    per_word = 32 // bits
    fields = codes.to(torch.int64).reshape(*codes.shape[:-1], -1, per_word)
    return as_int32((fields << shifts(bits, codes.device)).sum(-1))


def unpack(words: torch.Tensor, bits: int) -> torch.Tensor:
    """The codes, int64 (..., n), of int32 words (..., n * bits / 32)."""
    fields = words.unsqueeze(-1) >> shifts(bits, words.device, words.dtype)
    return (fields & ((1 << bits) - 1)).to(torch.int64).flatten(-2)


def shifts(bits: int, device: torch.device, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Where each field of a word begins: (32 / bits,)."""
    return torch.arange(0, 32, bits, device=device, dtype=dtype)


def as_int32(words: torch.Tensor) -> torch.Tensor:
    """int64 words from 0 to 2³² - 1 as int32 with the same 32 bits."""
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)
