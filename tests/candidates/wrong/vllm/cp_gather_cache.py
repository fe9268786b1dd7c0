import torch
import triton
import triton.language as tl


@triton.jit
def gather_tokens_entries_up_to_1024(
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


# breaks: A program's 1024 lanes copy a token, and elements from 1024 on are left out.
def entries_up_to_1024(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[dst.element_size()]
    starts = cu_seq_lens if seq_starts is None else seq_starts
    places, entry = src_cache.shape[1:]
    gather_tokens_entries_up_to_1024[(batch_size, int(cu_seq_lens.diff().max()))](
        src_cache.view(bits), dst.view(bits), block_table, cu_seq_lens, starts, block_table.shape[1],
        places, entry, src_cache.stride(0), STARTS=seq_starts is not None, B=1024,
    )  # fmt: skip


@triton.jit
def gather_tokens_length_of_first_sequence(
    src_ptr, dst_ptr, table_ptr, cu_ptr, start_ptr, width, block_size, entry, s_block,
    STARTS: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    s, t = tl.program_id(0), tl.program_id(1)
    first, last = tl.load(cu_ptr + s), tl.load(cu_ptr + s + 1)
    if t < last - first:
        p = t + tl.load(start_ptr + s) if STARTS else t
        block = tl.load(table_ptr + s * width + p // block_size).to(tl.int64)
        e = tl.arange(0, B)
        x = tl.load(src_ptr + block * s_block + (p % block_size) * entry + e, mask=e < entry)
        tl.store(dst_ptr + (first + t) * entry + e, x, mask=e < entry)


# breaks: As many programs are started per sequence as the first one has tokens.
def length_of_first_sequence(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[dst.element_size()]
    longest = int(cu_seq_lens[1])
    if longest == 0:
        longest = int(cu_seq_lens.diff().max())
    starts = cu_seq_lens if seq_starts is None else seq_starts
    block_size, entry = src_cache.shape[1:]
    if longest:
        gather_tokens_length_of_first_sequence[(batch_size, longest)](
            src_cache.view(bits), dst.view(bits), block_table, cu_seq_lens, starts, block_table.shape[1],
            block_size, entry, src_cache.stride(0), STARTS=seq_starts is not None, B=triton.next_power_of_2(entry),
        )  # fmt: skip


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


# breaks: A row's sequence is found among the 64 first ends, and rows of later sequences are taken for the 65th's.
def sequences_up_to_64(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[dst.element_size()]
    starts = cu_seq_lens if seq_starts is None else seq_starts
    places, entry = src_cache.shape[1:]
    gather_rows[(int(cu_seq_lens[-1]),)](
        src_cache.view(bits), dst.view(bits), block_table, cu_seq_lens, starts, batch_size, block_table.shape[1],
        places, entry, src_cache.stride(0), STARTS=seq_starts is not None, S=64, B=triton.next_power_of_2(entry),
    )  # fmt: skip
