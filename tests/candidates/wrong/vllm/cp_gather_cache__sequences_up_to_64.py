# outcome: wrong value
# breaks: A row's sequence is found among the 64 first ends, and rows of later sequences are taken for the 65th's.

import torch
import triton
import triton.language as tl


@triton.jit
def gather_rows(
    src_ptr, dst_ptr, table_ptr, cu_ptr, start_ptr, sequences, width, places, entry, s_block,
    STARTS: tl.constexpr, S: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    i = tl.arange(0, S)
    ends = tl.load(cu_ptr + 1 + i, mask=i < sequences, other=2147483647)
    s = tl.sum((ends <= row).to(tl.int32), axis=0)
    p = row - tl.load(cu_ptr + s)
    if STARTS:
        p += tl.load(start_ptr + s)
    block = tl.load(table_ptr + s * width + p // places).to(tl.int64)
    e = tl.arange(0, B)
    x = tl.load(src_ptr + block * s_block + (p % places) * entry + e, mask=e < entry)
    tl.store(dst_ptr + row * entry + e, x, mask=e < entry)


def cp_gather_cache(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[dst.element_size()]
    starts = cu_seq_lens if seq_starts is None else seq_starts
    places, entry = src_cache.shape[1:]
    gather_rows[(int(cu_seq_lens[-1]),)](
        src_cache.view(bits), dst.view(bits), block_table, cu_seq_lens, starts, batch_size, block_table.shape[1],
        places, entry, src_cache.stride(0), STARTS=seq_starts is not None, S=64, B=triton.next_power_of_2(entry),
    )  # fmt: skip
