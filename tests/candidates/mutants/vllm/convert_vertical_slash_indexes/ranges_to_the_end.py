# outcome: wrong value
# breaks: It lets a range grow to where the diagonal ends, not by whole blocks.

import torch


def convert_vertical_slash_indexes(
    block_count,
    block_offset,
    column_count,
    column_index,
    q_seqlens,
    kv_seqlens,
    vertical_indexes,
    slash_indexes,
    context_size,
    block_size_M,
    block_size_N,
    causal,
):
    sequences, heads = block_count.shape[:2]
    for b in range(sequences):
        q, kv = int(q_seqlens[b]), int(kv_seqlens[b])
        for h in range(heads):
            columns, diagonals = vertical_indexes[b, h].tolist(), slash_indexes[b, h].tolist()
            for r in range(-(-q // block_size_M)):
                ends = reached(r * block_size_M, q, kv, diagonals, block_size_M, causal)
                ranges = merged(ends, block_size_M)
                blocks = [k for a, z in ranges for k in range(a, min(z, kv), block_size_N)]
                limit = ranges[-1][0] if causal else kv
                loose = [v for v in columns if v < limit and not any(a <= v < z for a, z in ranges)]
                block_count[b, h, r], column_count[b, h, r] = len(blocks), len(loose)
                block_offset[b, h, r, : len(blocks)] = torch.tensor(blocks, dtype=torch.int32)
                column_index[b, h, r, : len(loose)] = torch.tensor(loose, dtype=torch.int32)


def reached(begin, q, kv, diagonals, size, causal):
    end = begin + size + kv - (q if causal else 0)
    ends = []
    for s in diagonals:
        if s < end and (causal or not ends or s >= begin):
            ends.append(max(end - s, size))
    return ends


def merged(ends, size):
    ranges = []
    for e in ends:
        if not ranges or e > ranges[-1][1] + size:
            ranges.append([e - size, e])
        elif e > ranges[-1][1]:
            ranges[-1][1] = e
    return ranges
