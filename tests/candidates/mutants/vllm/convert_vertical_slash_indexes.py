import torch


def end_of(begin, size, q, kv, causal):
    return begin + size + kv - (q if causal else 0)


def rows_of(q, size, rows):
    return -(-q // size)


def limit_of(ranges, kv, causal):
    return ranges[-1][0] if causal else kv


def convert(
    block_count, block_offset, column_count, column_index, q_seqlens, kv_seqlens, vertical_indexes, slash_indexes,
    context_size, block_size_M, block_size_N, causal,
    *, end_of=end_of, rows_of=rows_of, limit_of=limit_of, in_blocks=False, to_the_end=False,
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    sequences, heads, rows = block_count.shape
    for b in range(sequences):
        q, kv = int(q_seqlens[b]), int(kv_seqlens[b])
        for h in range(heads):
            columns, diagonals = vertical_indexes[b, h].tolist(), slash_indexes[b, h].tolist()
            for r in range(rows_of(q, block_size_M, rows)):
                begin = r * block_size_M
                ends = reached(begin, end_of(begin, block_size_M, q, kv, causal), diagonals, block_size_M, causal)
                ranges = merged(ends, block_size_M, to_the_end)
                blocks = [k for a, z in ranges for k in range(a, min(z, kv), block_size_N)]
                limit = limit_of(ranges, kv, causal)
                loose = [v for v in columns if v < limit and (in_blocks or not any(a <= v < z for a, z in ranges))]
                block_count[b, h, r], column_count[b, h, r] = len(blocks), len(loose)
                block_offset[b, h, r, : len(blocks)] = torch.tensor(blocks, dtype=torch.int32)
                column_index[b, h, r, : len(loose)] = torch.tensor(loose, dtype=torch.int32)


def reached(begin, end, diagonals, size, causal):
    ends = []
    for s in diagonals:
        if s < end and (causal or not ends or s >= begin):
            ends.append(max(end - s, size))
    return ends


def merged(ends, size, to_the_end):
    ranges = []
    for e in ends:
        if not ranges or e > ranges[-1][1] + size:
            ranges.append([e - size, e])
        elif e > ranges[-1][1]:
            ranges[-1][1] = e if to_the_end else ranges[-1][1] + size
    return ranges


# breaks: It lists columns that a block holds already.
def columns_in_blocks(*given):
    convert(*given, in_blocks=True)


# breaks: It lists columns that lie behind the last range.
def future_columns(*given):
    convert(*given, limit_of=lambda ranges, kv, causal: kv)


# breaks: It takes no account of keys beyond the queries.
def keys_end_with_queries(*given):
    convert(*given, end_of=lambda begin, size, q, kv, causal: begin + size + (0 if causal else kv))


# breaks: It treats the rows past the queries, too.
def padding_rows(*given):
    convert(*given, rows_of=lambda q, size, rows: rows)


# breaks: It lets a range grow to where the diagonal ends, not by whole blocks.
def ranges_to_the_end(*given):
    convert(*given, to_the_end=True)
