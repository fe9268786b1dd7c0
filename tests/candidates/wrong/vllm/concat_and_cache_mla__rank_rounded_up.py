# outcome: wrong value | input changed
# breaks: As many elements are copied as the next power of two of rank and pe_dim, without a mask, the key last.

import torch
import triton
import triton.language as tl


@triton.jit
def concat(
    c_ptr, pe_ptr, cache_ptr, slot_ptr, rank, c_row, pe_row, places, s_block, s_place, R: tl.constexpr, P: tl.constexpr
):
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        target = cache_ptr + (slot // places) * s_block + (slot % places) * s_place
        i, j = tl.arange(0, R), tl.arange(0, P)
        tl.store(target + i, tl.load(c_ptr + token * c_row + i))
        tl.store(target + rank + j, tl.load(pe_ptr + token * pe_row + j))


def concat_and_cache_mla(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    rank, pe_dim = kv_c.shape[1], k_pe.shape[1]
    c, pe = kv_c, k_pe
    if kv_cache_dtype != "auto":
        c, pe = ((x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn) for x in (c, pe))
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[c.element_size()]
    concat[(slot_mapping.numel(),)](
        c.view(bits), pe.view(bits), kv_cache.view(bits), slot_mapping, rank, c.stride(0), pe.stride(0),
        kv_cache.shape[1], kv_cache.stride(0), kv_cache.stride(1),
        R=triton.next_power_of_2(rank), P=triton.next_power_of_2(pe_dim),
    )  # fmt: skip
