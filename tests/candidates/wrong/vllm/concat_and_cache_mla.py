import torch
import triton
import triton.language as tl


@triton.jit
def concat(
    c_ptr, pe_ptr, cache_ptr, slot_ptr, rank, pe_dim, c_row, pe_row, block_size, s_block, s_place, B: tl.constexpr
):
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        target = cache_ptr + (slot // block_size) * s_block + (slot % block_size) * s_place
        j = tl.arange(0, B)
        tl.store(target + j, tl.load(c_ptr + token * c_row + j, mask=j < rank), mask=j < rank)
        tl.store(target + rank + j, tl.load(pe_ptr + token * pe_row + j, mask=j < pe_dim), mask=j < pe_dim)


# breaks: k_pe's rows are walked at the stride of kv_c's, scaled by their widths.
def one_row_stride(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    rank, pe_dim = kv_c.shape[1], k_pe.shape[1]
    c, pe = kv_c, k_pe
    c_row = c.stride(0)
    pe_row = c_row * pe_dim // rank
    if kv_cache_dtype != "auto":
        c, pe = ((x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn) for x in (c, pe))
        c_row, pe_row = c.stride(0), pe.stride(0)
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[c.element_size()]
    s = kv_cache.stride()
    concat[(slot_mapping.numel(),)](
        c.view(bits), pe.view(bits), kv_cache.view(bits), slot_mapping, rank, pe_dim, c_row, pe_row,
        kv_cache.shape[1], s[0], s[1], B=triton.next_power_of_2(max(rank, pe_dim)),
    )  # fmt: skip


@triton.jit
def concat_rank_rounded_up(
    c_ptr, pe_ptr, cache_ptr, slot_ptr, rank, c_row, pe_row, places, s_block, s_place, R: tl.constexpr, P: tl.constexpr
):
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        target = cache_ptr + (slot // places) * s_block + (slot % places) * s_place
        i, j = tl.arange(0, R), tl.arange(0, P)
        tl.store(target + i, tl.load(c_ptr + token * c_row + i))
        tl.store(target + rank + j, tl.load(pe_ptr + token * pe_row + j))


# breaks: As many elements are copied as the next power of two of rank and pe_dim, without a mask, the key last.
# outcome: wrong value | input changed
def rank_rounded_up(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    rank, pe_dim = kv_c.shape[1], k_pe.shape[1]
    c, pe = kv_c, k_pe
    if kv_cache_dtype != "auto":
        c, pe = ((x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn) for x in (c, pe))
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[c.element_size()]
    concat_rank_rounded_up[(slot_mapping.numel(),)](
        c.view(bits), pe.view(bits), kv_cache.view(bits), slot_mapping, rank, c.stride(0), pe.stride(0),
        kv_cache.shape[1], kv_cache.stride(0), kv_cache.stride(1),
        R=triton.next_power_of_2(rank), P=triton.next_power_of_2(pe_dim),
    )  # fmt: skip


@triton.jit
def concat_rank_up_to_512(
    c_ptr, pe_ptr, cache_ptr, slot_ptr, rank, pe_dim, c_row, pe_row, places, s_block, s_place, B: tl.constexpr
):
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        target = cache_ptr + (slot // places) * s_block + (slot % places) * s_place
        j = tl.arange(0, B)
        tl.store(target + j, tl.load(c_ptr + token * c_row + j, mask=j < rank), mask=j < rank)
        tl.store(target + rank + j, tl.load(pe_ptr + token * pe_row + j, mask=j < pe_dim), mask=j < pe_dim)


# breaks: A program's 512 lanes copy the latent vector, and elements from 512 on are left out.
def rank_up_to_512(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    c, pe = kv_c, k_pe
    if kv_cache_dtype != "auto":
        c, pe = ((x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn) for x in (c, pe))
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[c.element_size()]
    concat_rank_up_to_512[(slot_mapping.numel(),)](
        c.view(bits), pe.view(bits), kv_cache.view(bits), slot_mapping, c.shape[1], pe.shape[1], c.stride(0),
        pe.stride(0), kv_cache.shape[1], kv_cache.stride(0), kv_cache.stride(1), B=512,
    )  # fmt: skip


# breaks: Elements saturate at 448 before they are divided by the scale, which shows where it is above 1.
def saturates_before_it_scales(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    rank, pe_dim = kv_c.shape[1], k_pe.shape[1]
    c, pe = kv_c, k_pe
    c_row = c.stride(0)
    pe_row = pe.stride(0)
    if kv_cache_dtype != "auto":
        c, pe = ((x.float().clamp(-448, 448) / scale).clamp(-448, 448).to(torch.float8_e4m3fn) for x in (c, pe))
        c_row, pe_row = c.stride(0), pe.stride(0)
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[c.element_size()]
    s = kv_cache.stride()
    concat[(slot_mapping.numel(),)](
        c.view(bits), pe.view(bits), kv_cache.view(bits), slot_mapping, rank, pe_dim, c_row, pe_row,
        kv_cache.shape[1], s[0], s[1], B=triton.next_power_of_2(max(rank, pe_dim)),
    )  # fmt: skip
