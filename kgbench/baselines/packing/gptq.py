"""GPTQ: codes of 2, 3, 4 or 8 bits as a bit stream down each column, and the order that exllama's kernels want.

``qweight`` is int32 (k * bits / 32, n). In column j the codes of rows 0, 1, 2 … follow one another without gaps from
the lowest bit of the first word upwards; 32 / bits codes fill a word, with 3 bits 32 codes fill three words and codes
10 and 21 of them lie across a boundary. ``qzeros`` is int32 (groups, n * bits / 32): the same stream along a row. The
weight is ``(code - zero) * scale``, where in the first format of GPTQ ``zero`` is the stored number plus one (so 2^bits
where all bits are set, nothing wraps) and in the second the stored number.

Shuffled (``gptq_shuffle``): row r of the shuffled matrix is row perm[r] of the given one where there is a perm; then
the codes of every word change places. Code i of a word's eight (4 bits) or sixteen (2 bits) goes to field i // 2 of the
lower half of the word where i is even, of the upper half where i is odd. With 8 bits nothing moves. With 3 bits code
i = 10 w + j (j < 10) of the 32 goes to word w, bits 3 (j // 2) to 3 (j // 2) + 2 of the lower half where j is even, of
the upper half where j is odd; bit b of code 30 goes to bit 15 of word b, bit b of code 31 to bit 31 of word b.
"""

from __future__ import annotations

import torch

from kgbench.baselines.packing import words

Places = list[list[int]]
"""Bit position in a group's words, 32 to a word: for each code of the group, for each of its bits from the lowest."""


def sequential(bits: int) -> Places:
    """One code behind the other."""
    return [[bits * code + bit for bit in range(bits)] for code in range(_codes(bits))]


def shuffled(bits: int) -> Places:
    """exllama's order."""
    if bits == 8:
        return sequential(bits)
    if bits == 3:
        ten = [[32 * word + 16 * (j % 2) + 3 * (j // 2) + b for b in range(3)] for word in range(3) for j in range(10)]
        return [*ten, [15, 47, 79], [31, 63, 95]]
    return [[16 * (i % 2) + bits * (i // 2) + b for b in range(bits)] for i in range(32 // bits)]


def pack_rows(codes: torch.Tensor, bits: int, places: Places | None = None) -> torch.Tensor:
    """codes: (k, n). Returns int32 (k * bits / 32, n)."""
    places = places or sequential(bits)
    groups = codes.to(torch.int64).reshape(-1, len(places), codes.shape[-1])
    packed = groups.new_zeros(groups.shape[0], len(places) * bits // 32, codes.shape[-1])
    for code, targets in enumerate(places):
        for bit, target in enumerate(targets):
            packed[:, target // 32] |= ((groups[:, code] >> bit) & 1) << (target % 32)
    return words.as_int32(packed.flatten(0, 1))


def unpack_rows(packed: torch.Tensor, bits: int, places: Places | None = None) -> torch.Tensor:
    """The codes, int64 (k, n), of int32 (k * bits / 32, n)."""
    places = places or sequential(bits)
    groups = packed.reshape(-1, len(places) * bits // 32, packed.shape[-1])
    if bits != 3:
        begins = torch.tensor([each[0] for each in places], device=packed.device, dtype=packed.dtype)
        fields = (groups >> begins[:, None]) & ((1 << bits) - 1)
        return fields.flatten(0, 1).to(torch.int64)
    fields = torch.zeros(groups.shape[0], len(places), packed.shape[-1], device=packed.device, dtype=torch.int64)
    for code, sources in enumerate(places):
        for bit, source in enumerate(sources):
            fields[:, code] |= ((groups[:, source // 32].to(torch.int64) >> (source % 32)) & 1) << bit
    return fields.flatten(0, 1)


def pack_columns(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """codes: (groups, n), as ``qzeros`` are packed. Returns int32 (groups, n * bits / 32)."""
    return pack_rows(codes.T, bits).T.contiguous()


def unpack_columns(packed: torch.Tensor, bits: int) -> torch.Tensor:
    """The codes, int64 (groups, n), of int32 (groups, n * bits / 32)."""
    return unpack_rows(packed.T, bits).T


def shuffle(qweight: torch.Tensor, perm: torch.Tensor, bits: int) -> torch.Tensor:
    """qweight: int32 (k * bits / 32, n); perm: (k,), or without elements for none."""
    codes = unpack_rows(qweight, bits)
    return pack_rows(codes[perm.long()] if perm.numel() else codes, bits, shuffled(bits))


def _codes(bits: int) -> int:
    """Codes that fill whole words."""
    return 32 if bits == 3 else 32 // bits
