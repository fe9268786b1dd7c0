# outcome: wrong value
# breaks: A program's 1024 lanes copy a token, and elements from 1024 on are left out.

import torch
import triton
import triton.language as tl


@triton.jit
def gather_tokens(
    src_ptr, dst_ptr, table_ptr, cu_ptr, start_ptr, width, places, entry, s_block, STARTS: tl.constexpr, B: tl.constexpr
):
    s, t = tl.program_id(0), tl.program_id(1)
    first, last = tl.load(cu_ptr + s), tl.load(cu_ptr + s + 1)
    if t < last - first:
        p = t + tl.load(start_ptr + s) if STARTS else t
        block = tl.load(table_ptr + s * width + p // places).to(tl.int64)
        e = tl.arange(0, B)
        x = tl.load(src_ptr + block * s_block + (p % places) * entry + e, mask=e < entry)
        tl.store(dst_ptr + (first + t) * entry + e, x, mask=e < entry)


def cp_gather_cache(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[dst.element_size()]
    starts = cu_seq_lens if seq_starts is None else seq_starts
    places, entry = src_cache.shape[1:]
    gather_tokens[(batch_size, int(cu_seq_lens.diff().max()))](
        src_cache.view(bits), dst.view(bits), block_table, cu_seq_lens, starts, block_table.shape[1],
        places, entry, src_cache.stride(0), STARTS=seq_starts is not None, B=1024,
    )  # fmt: skip
