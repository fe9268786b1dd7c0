"""cp_gather_cache: tokens of several sequences, copied from the blocks that a table names into dense rows.

A row finds its sequence by a binary search among their ends, so that no length has to come to the host.
"""

import torch
import triton
import triton.language as tl

WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


@triton.jit
def _gather(
    cache_ptr, dst_ptr, table_ptr, ends_ptr, starts_ptr, sequences, block_size, n, cache_stride, slot_stride,
    table_stride, HAS_STARTS: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """ROWS rows; ends_ptr[s] is where the rows of sequence s begin, and ends_ptr[s + 1] where they end."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    sequence = row * 0
    for step in tl.static_range(STEPS):
        tried = sequence + (1 << (STEPS - 1 - step))
        end = tl.load(ends_ptr + tried, mask=tried <= sequences, other=0x7FFFFFFF)
        sequence = tl.where(end <= row, tried, sequence)
    live = sequence < sequences
    sequence = sequence.to(tl.int64)
    position = row - tl.load(ends_ptr + sequence, mask=live, other=0)
    if HAS_STARTS:
        position += tl.load(starts_ptr + sequence, mask=live, other=0)
    block = tl.load(table_ptr + sequence * table_stride + position // block_size, mask=live, other=0).to(tl.int64)
    source = cache_ptr + block * cache_stride + (position % block_size).to(tl.int64) * slot_stride
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = live[:, None] & (column < n)
    words = tl.load(source[:, None] + column, mask=inside, other=0)
    tl.store(dst_ptr + row.to(tl.int64)[:, None] * n + column, words, mask=inside)


def cp_gather_cache(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    """src_cache: (blocks, block_size, n); dst: (rows, n), dense, of which those of no sequence stay as they are."""
    if dst.numel() == 0:
        return
    word = WORDS[dst.element_size()]
    cache, rows = src_cache.view(word), dst.view(word)
    n = dst.shape[1]
    block = min(1024, triton.next_power_of_2(n))
    per = max(1, min((4096 if dst.is_cuda else 1 << 17) // block, triton.next_power_of_2(rows.shape[0])))
    _gather[(triton.cdiv(rows.shape[0], per), triton.cdiv(n, block))](
        cache, rows, block_table, cu_seq_lens, seq_starts, batch_size, src_cache.shape[1], n, cache.stride(0),
        cache.stride(1), block_table.stride(0), HAS_STARTS=seq_starts is not None, ROWS=per,
        STEPS=batch_size.bit_length(), BLOCK=block, num_warps=4,
    )  # fmt: skip
