import torch
import triton
import triton.language as tl


# breaks: A product that is too large for dst's dtype becomes its largest number in place of infinity.
def saturates(
    src_cache, dst, block_table, cu_seq_lens, token_to_seq, num_tokens, kv_cache_dtype, scale, seq_starts=None
):
    s = token_to_seq[:num_tokens].long()
    p = torch.arange(num_tokens, device=dst.device) - cu_seq_lens[s]
    if seq_starts is not None:
        p += seq_starts[s]
    places = src_cache.shape[1]
    rows = src_cache[block_table[s, p // places].long(), p % places]
    if kv_cache_dtype != "auto":
        top = torch.finfo(dst.dtype).max
        rows = (rows.float() * scale).clamp(-top, top)
    dst[:num_tokens] = rows.to(dst.dtype)


@triton.jit
def gather_rows(
    src_ptr, dst_ptr, table_ptr, cu_ptr, seq_ptr, start_ptr, scale_ptr, width, block_size, STARTS: tl.constexpr
):
    row = tl.program_id(0)
    s = tl.load(seq_ptr + row)
    p = row - tl.load(cu_ptr + s)
    if STARTS:
        p += tl.load(start_ptr + s)
    block = tl.load(table_ptr + s * width + p // block_size).to(tl.int64)
    scale = tl.load(scale_ptr)
    e = tl.arange(0, 1024)
    x = tl.load(src_ptr + (block * block_size + p % block_size) * 576 + e, mask=e < 576, other=0.0).to(tl.float32)
    tl.store(dst_ptr + row * 576 + e, (x * scale).to(dst_ptr.dtype.element_ty), mask=e < 576)


# breaks: What is gathered is multiplied by the scale for 'auto', too.
def scale_also_without_fp8(
    src_cache, dst, block_table, cu_seq_lens, token_to_seq, num_tokens, kv_cache_dtype, scale, seq_starts=None
):
    if num_tokens == 0:
        return
    src = src_cache.float() if src_cache.element_size() < 4 else src_cache
    work = torch.empty(num_tokens, 576, dtype=torch.float32, device=dst.device)
    starts = cu_seq_lens if seq_starts is None else seq_starts
    gather_rows[(num_tokens,)](
        src, work, block_table, cu_seq_lens, token_to_seq, starts, scale,
        block_table.shape[1], src_cache.shape[1], STARTS=seq_starts is not None,
    )  # fmt: skip
    dst[:num_tokens].copy_(work)
