"""gather_and_maybe_dequant_cache: the entries of each sequence's tokens out of a paged cache, one after the other.

Entries of float8_e4m3fn are multiplied by their scale; all others are copied bit by bit.
"""

import torch
import triton
import triton.language as tl

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
"""Integers of as many bytes: what is copied bit by bit needs no number format."""


@triton.jit
def _copy(
    cache_ptr, out_ptr, source, target, inside, scale,
    FIRST: tl.constexpr, BLOCK: tl.constexpr, N: tl.constexpr, FP8: tl.constexpr,
):  # fmt: skip
    """BLOCK of the N elements of each entry, from FIRST on."""
    i = FIRST + tl.arange(0, BLOCK)
    mask = inside[:, None] & (i < N)[None, :]
    x = tl.load(cache_ptr + source[:, None] + i[None, :], mask=mask, other=0)
    if FP8:
        x = (x.to(tl.float8e4nv, bitcast=True).to(tl.float32) * scale).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + target[:, None] + i[None, :], x, mask=mask)


@triton.jit
def _gather(
    cache_ptr, out_ptr, table_ptr, start_ptr, sequence_ptr, first_ptr, scale_ptr, tokens, block_size,
    table_sequence, table_column,
    N: tl.constexpr, TOKENS: tl.constexpr, BLOCK: tl.constexpr, LAST: tl.constexpr, HAS_FIRST: tl.constexpr,
    FP8: tl.constexpr,
):  # fmt: skip
    """TOKENS tokens, BLOCK elements at a time; LAST: the length of a shorter last block, a power of two."""
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    inside = token < tokens
    sequence = tl.load(sequence_ptr + token, mask=inside, other=0)
    position = token - tl.load(start_ptr + sequence, mask=inside, other=0)
    if HAS_FIRST:
        position += tl.load(first_ptr + sequence, mask=inside, other=0)
    position = tl.where(inside, position, 0)
    column = position // block_size
    at = table_ptr + sequence.to(tl.int64) * table_sequence + column * table_column
    block = tl.load(at, mask=inside, other=0).to(tl.int64)
    source = (block * block_size + (position - column * block_size)) * N
    target = token.to(tl.int64) * N
    scale = 1.0
    if FP8:
        scale = tl.load(scale_ptr)
    for part in tl.static_range(0, N // BLOCK):
        _copy(cache_ptr, out_ptr, source, target, inside, scale, part * BLOCK, BLOCK, N, FP8)
    if N % BLOCK != 0:
        _copy(cache_ptr, out_ptr, source, target, inside, scale, N // BLOCK * BLOCK, LAST, N, FP8)


def gather_and_maybe_dequant_cache(
    src_cache, dst, block_table, cu_seq_lens, token_to_seq, num_tokens, kv_cache_dtype, scale, seq_starts=None
):
    """src_cache: (blocks, block_size, n), dst: (tokens, n); cu_seq_lens: first token of each sequence, int32.

    seq_starts: how many tokens of a sequence's cache to skip. kv_cache_dtype 'auto' keeps the dtype.
    """
    tokens, n = int(num_tokens), dst.shape[1]
    if tokens == 0 or n == 0:
        return
    fp8 = kv_cache_dtype != "auto"
    bits = _BITS[src_cache.element_size()]
    rest = n % 512
    _gather[(triton.cdiv(tokens, 8),)](
        src_cache.view(bits), dst if fp8 else dst.view(bits), block_table, cu_seq_lens, token_to_seq, seq_starts,
        scale, tokens, src_cache.shape[1], block_table.stride(0), block_table.stride(1),
        N=n, TOKENS=8, BLOCK=512, LAST=triton.next_power_of_2(rest) if rest else 1, HAS_FIRST=seq_starts is not None,
        FP8=fp8, num_warps=4,
    )  # fmt: skip
