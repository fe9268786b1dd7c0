"""copy_blocks: copies blocks within the key and value caches of all layers, up to 32 caches in one launch.

A program copies a chunk of one block of one cache; it picks its cache's pointer out of the tuple that it is given.
"""

import torch
import triton
import triton.language as tl

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integers of as many bytes: what is copied bit by bit needs no number format."""


@triton.jit
def _copy(cache_ptrs, mapping_ptr, mapping_pair, mapping_side, n, chunks, CACHES: tl.constexpr, BLOCK: tl.constexpr):
    pair, chunk, cache = tl.program_id(0) // chunks, tl.program_id(0) % chunks, tl.program_id(1)
    base = cache_ptrs[0]
    for i in tl.static_range(1, CACHES):
        base = tl.where(cache == i, cache_ptrs[i], base)
    source = tl.load(mapping_ptr + pair.to(tl.int64) * mapping_pair)
    target = tl.load(mapping_ptr + pair.to(tl.int64) * mapping_pair + mapping_side)
    i = chunk.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(base + target * n + i, tl.load(base + source * n + i, mask=i < n, other=0), mask=i < n)


def copy_blocks(key_caches, value_caches, block_mapping):
    """key_caches, value_caches: lists of dense tensors (blocks, …); block_mapping: (pairs, 2) int64, from and to."""
    pairs = block_mapping.shape[0]
    if pairs == 0:
        return
    alike = {}
    for cache in [*key_caches, *value_caches]:
        if cache.numel():
            kind = (cache.numel() // cache.shape[0], cache.element_size())
            alike.setdefault(kind, []).append(cache.view(_BITS[cache.element_size()]))
    for (n, size), caches in alike.items():
        block = min(16384 // size, max(16, triton.next_power_of_2(n)))
        chunks = triton.cdiv(n, block)
        for first in range(0, len(caches), 32):
            part = caches[first : first + 32]
            # Few lengths of tuples mean few compilations.
            padded = triton.next_power_of_2(len(part))
            _copy[(pairs * chunks, len(part))](
                tuple(part + part[-1:] * (padded - len(part))), block_mapping, block_mapping.stride(0),
                block_mapping.stride(1), n, chunks, CACHES=padded, BLOCK=block, num_warps=4,
            )  # fmt: skip
