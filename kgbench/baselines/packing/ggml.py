"""GGUF blocks: stretches of a row's values, each block a run of bytes with its own scales. Numbers are little-endian.

A row of n values is n / values_per_block blocks, one after the other; ``d`` and ``m`` are float16. Blocks of 32 values
(value i < 32, lane l < 16; ``qs[l]`` holds value l in its low nibble, value l + 16 in its high one):

====== ======= ====================================== ==========================================
number name    bytes                                  value
====== ======= ====================================== ==========================================
2      Q4_0    d, qs[16]                              d (code - 8)
3      Q4_1    d, m, qs[16]                           d code + m
6      Q5_0    d, qh[4], qs[16]                       d (code - 16), bit 4 of code i is bit i of qh
7      Q5_1    d, m, qh[4], qs[16]                    d code + m, bit 4 as above
8      Q8_0    d, int8 qs[32]                         d code
20     IQ4_NL  d, qs[16]                              d NONLINEAR[code]
====== ======= ====================================== ==========================================

Blocks of 256 values. Value i = 128 h + 32 j + l (h < 2, j < 4, l < 32), sub-block s = i // 16 (16 of them) or b = i //
32 (8):

====== ======= ====================================== ==========================================
10     Q2_K    scales[16], qs[64], d, m               d (scales[s] % 16) code - m (scales[s] // 16)
11     Q3_K    hmask[32], qs[64], scales[12], d       d (scale[s] - 32) (code - 4)
12     Q4_K    d, m, scales[12], qs[128]              d scale[b] code - m minimum[b]
13     Q5_K    d, m, scales[12], qh[32], qs[128]      d scale[b] code - m minimum[b]
14     Q6_K    ql[128], qh[64], int8 scales[16], d    d scales[s] (code - 32)
23     IQ4_XS  d, uint16 sh, sl[4], qs[128]           d (scale[b] - 32) NONLINEAR[code]
====== ======= ====================================== ==========================================

- Q2_K: code i is bits 2 j, 2 j + 1 of qs[32 h + l].
- Q3_K: the low bits are those of Q2_K, bit 2 is bit 4 h + j of hmask[l]. scale[s] (6 bits): the low four are the low
  nibble of scales[s] for s < 8, else the high nibble of scales[s - 8]; the high two are bits 2 (s // 4) and up of
  scales[8 + s % 4].
- Q4_K and Q5_K, value 64 g + 32 f + l: the low bits are the low (f = 0) or high (f = 1) nibble of qs[32 g + l]; bit 4
  of Q5_K is bit 2 g + f of qh[l]. scale[b] and minimum[b] (6 bits) for b < 4: the low six bits of scales[b] and
  scales[b + 4]; for b >= 4 the low four are the low nibble (scale) or high nibble (minimum) of scales[b + 4], the high
  two the top two bits of scales[b - 4] (scale) or scales[b] (minimum).
- Q6_K: the low four bits are the low nibble (j < 2) or high nibble (j >= 2) of ql[64 h + 32 (j % 2) + l], the high two
  are bits 2 j, 2 j + 1 of qh[32 h + l].
- IQ4_XS, value 32 b + i: qs[16 b + l] holds values l and l + 16 as above. scale[b] (6 bits): the low four are the low
  (b even) or high (b odd) nibble of sl[b // 2], the high two bits 2 b, 2 b + 1 of sh.

NONLINEAR = -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch

NONLINEAR: Final = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


@dataclass(frozen=True)
class Block:
    """The numbers that blocks store, each with the blocks in front."""

    d: torch.Tensor
    """float16 (blocks,)."""
    codes: torch.Tensor
    """int64 (blocks, values): as stored, without an offset; of Q8_0 signed."""
    m: torch.Tensor | None = None
    """float16 (blocks,)."""
    scales: torch.Tensor | None = None
    """int64 (blocks, sub-blocks): as stored; of Q6_K signed."""
    minima: torch.Tensor | None = None
    """int64 (blocks, sub-blocks)."""


@dataclass(frozen=True)
class Format:
    name: str
    values: int
    """Number of values in a block."""
    nbytes: int
    """Size of a block in bytes."""
    code_bits: int
    pack: Callable[[Block], list[torch.Tensor]]
    """The block's fields in order, uint8 or int64 bytes (blocks, …)."""
    unpack: Callable[[torch.Tensor], Block]
    """Inverse of ``pack``, from int64 bytes (blocks, nbytes)."""
    halves: tuple[int, ...]
    """Offsets in bytes at which d and, if there is one, m begin."""
    zero: int = 0
    """Number that is subtracted from a code."""
    scale_bits: int = 0
    """Bits of a sub-block's scale; 0 without sub-blocks."""
    sub: int = 0
    """Number of values that share a sub-block's scale."""
    scale_zero: int = 0
    minima: bool = False
    """Whether a minimum is subtracted, scaled with m; otherwise m is added."""
    signed_scales: bool = False
    nonlinear: bool = False


def pack(block: Block, number: int) -> torch.Tensor:
    """uint8 (blocks, bytes of a block)."""
    fields = FORMATS[number].pack(block)
    return torch.cat([field.to(torch.int64) & 255 for field in fields], 1).to(torch.uint8)


def unpack(packed: torch.Tensor, number: int) -> Block:
    """packed: uint8 (…, a whole number of blocks); the blocks of the result are in one dimension."""
    return FORMATS[number].unpack(packed.reshape(-1, FORMATS[number].nbytes).to(torch.int64))


def parts(packed: torch.Tensor, number: int, unsigned: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled codes and what is added to them, float64 (…, values): the weights are their sum.

    packed: uint8 (…, bytes of a row); ``unsigned``: the offset of codes counts as added, as in ``d code - 8 d``.
    """
    form, block = FORMATS[number], unpack(packed, number)
    table = torch.tensor(NONLINEAR, dtype=torch.float64, device=packed.device)
    zero = 0 if unsigned else form.zero
    codes = table[block.codes] if form.nonlinear else (block.codes - zero).double()
    factor = block.d.double()[:, None]
    if block.scales is not None:
        factor = (factor * (block.scales - form.scale_zero)).repeat_interleave(form.sub, 1)
    added = (zero - form.zero) * factor
    if block.minima is not None:
        added = (_given(block.m).double()[:, None] * -block.minima).repeat_interleave(form.sub, 1)
    elif block.m is not None:
        added = block.m.double()[:, None]
    scaled = codes * factor
    shape = (*packed.shape[:-1], -1)
    return scaled.reshape(shape), added.expand_as(scaled).reshape(shape)


def dequantize(packed: torch.Tensor, number: int) -> torch.Tensor:
    """The weights, float64 (…, values)."""
    scaled, added = parts(packed, number)
    return scaled + added


def row_bytes(number: int, values: int) -> int:
    return values // FORMATS[number].values * FORMATS[number].nbytes


def set_halves(packed: torch.Tensor, number: int, *halves: torch.Tensor) -> None:
    """Write d, and m where there is one. packed: uint8 (blocks, bytes of a block); halves: float16 (blocks,)."""
    for begin, half in zip(FORMATS[number].halves, halves, strict=False):
        packed[:, begin : begin + 2] = half.to(torch.float16)[:, None].view(torch.uint8)


# --- bytes ---


def _half(raw: torch.Tensor, begin: int) -> torch.Tensor:
    return raw[:, begin : begin + 2].to(torch.uint8).contiguous().view(torch.float16)[:, 0]


def _bytes(half: torch.Tensor | None) -> torch.Tensor:
    assert half is not None
    return half.to(torch.float16)[:, None].view(torch.uint8)


def _signed(raw: torch.Tensor) -> torch.Tensor:
    return torch.where(raw >= 128, raw - 256, raw)


def _given(values: torch.Tensor | None) -> torch.Tensor:
    assert values is not None
    return values


def _nibbles(raw: torch.Tensor, run: int) -> torch.Tensor:
    """(blocks, n) → (blocks, 2 n): of every ``run`` bytes the low nibbles, then the high ones."""
    split = raw.reshape(raw.shape[0], -1, 1, run)
    return torch.cat([split & 15, split >> 4], 2).reshape(raw.shape[0], -1)


def _from_nibbles(codes: torch.Tensor, run: int) -> torch.Tensor:
    split = codes.reshape(codes.shape[0], -1, 2, run)
    return (split[:, :, 0] | split[:, :, 1] << 4).reshape(codes.shape[0], -1)


def _planes(raw: torch.Tensor, bits: int, count: int) -> torch.Tensor:
    """(blocks, n) → (blocks, count, n): plane c is bits c * bits to (c + 1) * bits - 1 of every byte."""
    shift = torch.arange(0, bits * count, bits, device=raw.device)[:, None]
    return (raw[:, None, :] >> shift) & ((1 << bits) - 1)


def _from_planes(planes: torch.Tensor, bits: int) -> torch.Tensor:
    shift = torch.arange(0, bits * planes.shape[1], bits, device=planes.device)[:, None]
    return (planes << shift).sum(1)


def _bits32(raw: torch.Tensor) -> torch.Tensor:
    """(blocks, 4) → (blocks, 32): bit i of the four bytes."""
    return _planes(raw, 1, 8).transpose(1, 2).reshape(raw.shape[0], 32)


def _from_bits32(bits: torch.Tensor) -> torch.Tensor:
    return _from_planes(bits.reshape(-1, 4, 8).transpose(1, 2), 1)


# --- blocks of 32 ---


def _simple(has_m: bool, has_fifth: bool) -> tuple[Callable[[Block], list[torch.Tensor]], Callable[..., Block]]:
    """Q4_0, Q4_1, Q5_0, Q5_1 and IQ4_NL."""
    start = 4 if has_m else 2
    begin = start + (4 if has_fifth else 0)

    def packs(block: Block) -> list[torch.Tensor]:
        head = [_bytes(block.d), *([_bytes(block.m)] if has_m else [])]
        return [*head, *([_from_bits32(block.codes >> 4)] if has_fifth else []), _from_nibbles(block.codes & 15, 16)]

    def unpacks(raw: torch.Tensor) -> Block:
        codes = _nibbles(raw[:, begin : begin + 16], 16)
        if has_fifth:
            codes = codes | _bits32(raw[:, start:begin]) << 4
        return Block(_half(raw, 0), codes, _half(raw, 2) if has_m else None)

    return packs, unpacks


def _pack_q8_0(block: Block) -> list[torch.Tensor]:
    return [_bytes(block.d), block.codes]


def _unpack_q8_0(raw: torch.Tensor) -> Block:
    return Block(_half(raw, 0), _signed(raw[:, 2:]))


# --- blocks of 256 ---


def _two_bits(raw: torch.Tensor) -> torch.Tensor:
    """qs (blocks, 64) → low two bits of the codes (blocks, 256)."""
    return _planes(raw.reshape(-1, 32), 2, 4).reshape(raw.shape[0], 256)


def _from_two_bits(codes: torch.Tensor) -> torch.Tensor:
    return _from_planes(codes.reshape(-1, 4, 32), 2).reshape(-1, 64)


def _pack_q2_k(block: Block) -> list[torch.Tensor]:
    scales = _given(block.scales) | _given(block.minima) << 4
    return [scales, _from_two_bits(block.codes), _bytes(block.d), _bytes(block.m)]


def _unpack_q2_k(raw: torch.Tensor) -> Block:
    scales = raw[:, :16]
    return Block(_half(raw, 80), _two_bits(raw[:, 16:80]), _half(raw, 82), scales & 15, scales >> 4)


def _pack_q3_k(block: Block) -> list[torch.Tensor]:
    scales = _given(block.scales)
    low = _from_nibbles(scales & 15, 8)
    high = _from_planes((scales >> 4).reshape(-1, 4, 4), 2)
    mask = _from_planes((block.codes >> 2).reshape(-1, 8, 32), 1)
    return [mask, _from_two_bits(block.codes & 3), low, high, _bytes(block.d)]


def _unpack_q3_k(raw: torch.Tensor) -> Block:
    mask = _planes(raw[:, :32], 1, 8).reshape(-1, 256)
    scales = _nibbles(raw[:, 96:104], 8) | _planes(raw[:, 104:108], 2, 4).reshape(-1, 16) << 4
    return Block(_half(raw, 108), _two_bits(raw[:, 32:96]) | mask << 2, None, scales)


def _six_bits(block: Block) -> torch.Tensor:
    """scales[12] of Q4_K and Q5_K."""
    scale, minimum = _given(block.scales), _given(block.minima)
    first = scale[:, :4] | scale[:, 4:] >> 4 << 6
    second = minimum[:, :4] | minimum[:, 4:] >> 4 << 6
    return torch.cat([first, second, scale[:, 4:] & 15 | (minimum[:, 4:] & 15) << 4], 1)


def _scales_and_minima(raw: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    first, second, third = raw[:, :4], raw[:, 4:8], raw[:, 8:12]
    scales = torch.cat([first & 63, third & 15 | first >> 6 << 4], 1)
    return scales, torch.cat([second & 63, third >> 4 | second >> 6 << 4], 1)


def _pack_q4_k(block: Block) -> list[torch.Tensor]:
    return [_bytes(block.d), _bytes(block.m), _six_bits(block), _from_nibbles(block.codes, 32)]


def _unpack_q4_k(raw: torch.Tensor) -> Block:
    return Block(_half(raw, 0), _nibbles(raw[:, 16:], 32), _half(raw, 2), *_scales_and_minima(raw[:, 4:16]))


def _pack_q5_k(block: Block) -> list[torch.Tensor]:
    high = _from_planes((block.codes >> 4).reshape(-1, 8, 32), 1)
    return [_bytes(block.d), _bytes(block.m), _six_bits(block), high, _from_nibbles(block.codes & 15, 32)]


def _unpack_q5_k(raw: torch.Tensor) -> Block:
    codes = _nibbles(raw[:, 48:], 32) | _planes(raw[:, 16:48], 1, 8).reshape(-1, 256) << 4
    return Block(_half(raw, 0), codes, _half(raw, 2), *_scales_and_minima(raw[:, 4:16]))


def _pack_q6_k(block: Block) -> list[torch.Tensor]:
    low = _from_nibbles(block.codes & 15, 64)
    high = _from_planes((block.codes >> 4).reshape(-1, 4, 32), 2).reshape(-1, 64)
    return [low, high, _given(block.scales), _bytes(block.d)]


def _unpack_q6_k(raw: torch.Tensor) -> Block:
    high = _two_bits(raw[:, 128:192])
    return Block(_half(raw, 208), _nibbles(raw[:, :128], 64) | high << 4, None, _signed(raw[:, 192:208]))


def _pack_iq4_xs(block: Block) -> list[torch.Tensor]:
    scales = _given(block.scales)
    high = _from_planes((scales >> 4).reshape(-1, 2, 4).transpose(1, 2), 2)
    return [_bytes(block.d), high, scales[:, ::2] & 15 | (scales[:, 1::2] & 15) << 4, _from_nibbles(block.codes, 16)]


def _unpack_iq4_xs(raw: torch.Tensor) -> Block:
    high = _planes(raw[:, 2:4], 2, 4).transpose(1, 2).reshape(-1, 8)
    return Block(_half(raw, 0), _nibbles(raw[:, 8:], 16), None, _nibbles(raw[:, 4:8], 1) | high << 4)


FORMATS: Final[dict[int, Format]] = {
    2: Format("Q4_0", 32, 18, 4, *_simple(has_m=False, has_fifth=False), (0,), zero=8),
    3: Format("Q4_1", 32, 20, 4, *_simple(has_m=True, has_fifth=False), (0, 2)),
    6: Format("Q5_0", 32, 22, 5, *_simple(has_m=False, has_fifth=True), (0,), zero=16),
    7: Format("Q5_1", 32, 24, 5, *_simple(has_m=True, has_fifth=True), (0, 2)),
    8: Format("Q8_0", 32, 34, 8, _pack_q8_0, _unpack_q8_0, (0,)),
    10: Format("Q2_K", 256, 84, 2, _pack_q2_k, _unpack_q2_k, (80, 82), scale_bits=4, sub=16, minima=True),
    11: Format("Q3_K", 256, 110, 3, _pack_q3_k, _unpack_q3_k, (108,), zero=4, scale_bits=6, sub=16, scale_zero=32),
    12: Format("Q4_K", 256, 144, 4, _pack_q4_k, _unpack_q4_k, (0, 2), scale_bits=6, sub=32, minima=True),
    13: Format("Q5_K", 256, 176, 5, _pack_q5_k, _unpack_q5_k, (0, 2), scale_bits=6, sub=32, minima=True),
    14: Format("Q6_K", 256, 210, 6, _pack_q6_k, _unpack_q6_k, (208,), 32, 8, 16, signed_scales=True),
    20: Format("IQ4_NL", 32, 18, 4, *_simple(has_m=False, has_fifth=False), (0,), nonlinear=True),
    23: Format("IQ4_XS", 256, 136, 4, _pack_iq4_xs, _unpack_iq4_xs, (0,), 0, 6, 32, 32, nonlinear=True),
}
"""Every format, by ggml's number of the type."""
