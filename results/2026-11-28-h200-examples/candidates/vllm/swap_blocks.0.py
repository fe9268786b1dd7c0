"""swap_blocks: copies blocks of one cache into another, one launch for all pairs; the mapping may lie on the host."""

import torch
import triton
import triton.language as tl

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integers of as many bytes: what is copied bit by bit needs no number format."""


@triton.jit
def _copy(from_ptr, to_ptr, mapping_ptr, n, chunks, BLOCK: tl.constexpr):
    pair = (tl.program_id(0) // chunks).to(tl.int64)
    source = tl.load(mapping_ptr + pair * 2)
    target = tl.load(mapping_ptr + pair * 2 + 1)
    i = (tl.program_id(0) % chunks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to_ptr + target * n + i, tl.load(from_ptr + source * n + i, mask=i < n, other=0), mask=i < n)


def swap_blocks(src, dst, block_size_in_bytes, block_mapping):
    """src, dst: dense (blocks, …), alike in dtype; block_mapping: (pairs, 2) int64, from and to, on any device."""
    pairs, size = block_mapping.shape[0], src.element_size()
    n = int(block_size_in_bytes) // size
    if pairs == 0 or n == 0 or dst.numel() == 0 or src.numel() == 0:
        return
    # Pageable memory is staged before `to` returns, pinned memory is not: only the first may be copied without waiting.
    mapping = block_mapping.to(src.device, non_blocking=not block_mapping.is_pinned()).contiguous()
    chunk = 8192 if pairs * n * size > 8 << 20 else 4096
    block = max(32, min(chunk // size, triton.next_power_of_2(n)))
    chunks = triton.cdiv(n, block)
    _copy[(pairs * chunks,)](src.view(_BITS[size]), dst.view(_BITS[size]), mapping, n, chunks, BLOCK=block, num_warps=4)
