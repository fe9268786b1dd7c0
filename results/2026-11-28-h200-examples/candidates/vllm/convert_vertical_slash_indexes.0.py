"""convert_vertical_slash_indexes: which blocks and columns of keys each block of queries attends to.

A first kernel walks each row's diagonals (slashes), which are sorted, and keeps the end of the range of keys that they
cover so far. A second one cuts the ranges into blocks, and of the single columns (verticals) keeps those that no range
covers; they are found by a binary search among the ranges' ends.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _maximum(x, y):
    return tl.maximum(x, y)


@triton.jit
def _extended(end, slash, limit, start, size, CAUSAL: tl.constexpr):
    """The end of the covered range with one more diagonal; 0: there is none yet."""
    new = tl.maximum(limit - slash, size)
    taken = slash < limit
    if not CAUSAL:
        taken = taken & ((slash >= start) | (end == 0))
    reached = tl.where(new > end + size, new, tl.where(new > end, end + size, end))
    return tl.where(taken, reached, end)


@triton.jit
def _ranges(
    query_ptr, key_ptr, slash_ptr, end_ptr, heads, slashes, rows, end_row, tiles, size,
    CAUSAL: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """ROWS blocks of queries of one head; four diagonals at a time, so that their ends are stored side by side."""
    head = tl.program_id(0) // tiles
    row = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)
    queries = tl.load(query_ptr + head // heads)
    keys = tl.load(key_ptr + head // heads)
    start = row * size
    limit = start + size + (keys - queries if CAUSAL else keys)
    live = (row < rows) & (start < queries)
    end = tl.zeros([ROWS], dtype=tl.int32)
    slash_ptr += head.to(tl.int64) * slashes
    ends = end_ptr + (head.to(tl.int64) * rows + row) * end_row
    for i in range(0, slashes, 4):
        first = _extended(end, tl.load(slash_ptr + i), limit, start, size, CAUSAL)
        slash = tl.load(slash_ptr + i + 1, mask=i + 1 < slashes, other=2147483647)
        second = _extended(first, slash, limit, start, size, CAUSAL)
        slash = tl.load(slash_ptr + i + 2, mask=i + 2 < slashes, other=2147483647)
        third = _extended(second, slash, limit, start, size, CAUSAL)
        slash = tl.load(slash_ptr + i + 3, mask=i + 3 < slashes, other=2147483647)
        end = _extended(third, slash, limit, start, size, CAUSAL)
        four = tl.reshape(tl.join(tl.join(first, third), tl.join(second, end)), [ROWS, 4])
        tl.store(ends[:, None] + (i + tl.arange(0, 4))[None, :], four, mask=live[:, None])


@triton.jit
def _emit(
    query_ptr, key_ptr, vertical_ptr, end_ptr, block_count_ptr, block_ptr, column_count_ptr, column_ptr,
    heads, slashes, verticals, rows, end_row, size, key_size,
    CAUSAL: tl.constexpr, SLASHES: tl.constexpr, TOP: tl.constexpr, STEPS: tl.constexpr, VERTICALS: tl.constexpr,
):  # fmt: skip
    """One block of queries. TOP: the binary search's first step, 2^STEPS; VERTICALS columns at a time."""
    head = tl.program_id(0) // rows
    queries = tl.load(query_ptr + head // heads)
    keys = tl.load(key_ptr + head // heads)
    if (tl.program_id(0) - head * rows) * size < queries:
        row = tl.program_id(0).to(tl.int64)
        ends = end_ptr + row * end_row
        i = tl.arange(0, SLASHES)
        end = tl.load(ends + i, mask=i < slashes, other=0)
        before = tl.load(ends + i - 1, mask=(i < slashes) & (i > 0), other=0)
        # A diagonal that moves the end covers ``size`` keys up to it. Behind a gap it begins a new range of blocks.
        moves = (i < slashes) & (end > before)
        begins = moves & ((before == 0) | (end - size > before))
        starts = tl.where(begins, end - size, -1)
        range_start = tl.associative_scan(starts, 0, _maximum)
        block = range_start + ((end - size - range_start + key_size - 1) // key_size) * key_size
        kept = moves & (block < tl.minimum(end, keys))
        place = tl.cumsum(kept.to(tl.int32), axis=0) - 1
        tl.store(block_ptr + row * slashes + place, block, mask=kept)
        tl.store(block_count_ptr + row, tl.sum(kept.to(tl.int32), axis=0))
        last = tl.max(starts, axis=0)
        count = tl.sum(tl.zeros([VERTICALS], dtype=tl.int32), axis=0)
        vertical_ptr += head.to(tl.int64) * verticals
        for start in range(0, verticals, VERTICALS):
            # Verticals are sorted, and a causal row has none behind its last range's start.
            needed = True
            if CAUSAL:
                needed = tl.load(vertical_ptr + start) < last
            if needed:
                j = start + tl.arange(0, VERTICALS)
                column = tl.load(vertical_ptr + j, mask=j < verticals, other=0)
                passed = tl.zeros([VERTICALS], dtype=tl.int32)
                for step in tl.static_range(0, STEPS + 1):
                    tried = passed + (TOP >> step)
                    other = tl.load(ends + tried - 1, mask=tried <= slashes, other=2147483647)
                    passed = tl.where(other <= column, tried, passed)
                next_end = tl.load(ends + passed, mask=passed < slashes, other=0)
                covered = (passed < slashes) & (next_end - size <= column)
                single = (j < verticals) & (covered == 0)
                if CAUSAL:
                    single = single & (column < last)
                at = column_ptr + row * verticals + count + tl.cumsum(single.to(tl.int32), axis=0) - 1
                tl.store(at, column, mask=single)
                count += tl.sum(single.to(tl.int32), axis=0)
        tl.store(column_count_ptr + row, count)


def convert_vertical_slash_indexes(
    block_count, block_offset, column_count, column_index, q_seqlens, kv_seqlens, vertical_indexes, slash_indexes,
    context_size, block_size_M, block_size_N, causal,
):  # fmt: skip
    """vertical_indexes, slash_indexes: (batch, heads, …) int32; counts: (batch, heads, rows), written."""
    batch, heads, slashes = slash_indexes.shape
    verticals, rows = vertical_indexes.shape[2], block_count.shape[2]
    if batch * heads * rows == 0 or slashes == 0:
        return
    end_row = triton.cdiv(slashes, 16) * 16
    ends = torch.empty((batch * heads * rows, end_row), dtype=torch.int32, device=slash_indexes.device)
    tiles = triton.cdiv(rows, 32)
    _ranges[(batch * heads * tiles,)](
        q_seqlens, kv_seqlens, slash_indexes.contiguous(), ends, heads, slashes, rows, end_row, tiles, block_size_M,
        CAUSAL=bool(causal), ROWS=32, num_warps=1,
    )  # fmt: skip
    steps = slashes.bit_length() - 1
    _emit[(batch * heads * rows,)](
        q_seqlens, kv_seqlens, vertical_indexes.contiguous(), ends, block_count, block_offset, column_count,
        column_index, heads, slashes, verticals, rows, end_row, block_size_M, block_size_N, CAUSAL=bool(causal),
        SLASHES=triton.next_power_of_2(slashes), TOP=1 << steps, STEPS=steps,
        VERTICALS=max(32, min(512, triton.next_power_of_2(max(verticals, 1)))), num_warps=4,
    )  # fmt: skip
