# outcome: wrong value
# breaks: A program's 512 lanes copy the latent vector, and elements from 512 on are left out.

import torch
import triton
import triton.language as tl


@triton.jit
def concat(c_ptr, pe_ptr, cache_ptr, slot_ptr, rank, pe_dim, c_row, pe_row, places, s_block, s_place, B: tl.constexpr):
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        target = cache_ptr + (slot // places) * s_block + (slot % places) * s_place
        j = tl.arange(0, B)
        tl.store(target + j, tl.load(c_ptr + token * c_row + j, mask=j < rank), mask=j < rank)
        tl.store(target + rank + j, tl.load(pe_ptr + token * pe_row + j, mask=j < pe_dim), mask=j < pe_dim)


def concat_and_cache_mla(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    c, pe = kv_c, k_pe
    if kv_cache_dtype != "auto":
        c, pe = ((x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn) for x in (c, pe))
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[c.element_size()]
    concat[(slot_mapping.numel(),)](
        c.view(bits), pe.view(bits), kv_cache.view(bits), slot_mapping, c.shape[1], pe.shape[1], c.stride(0),
        pe.stride(0), kv_cache.shape[1], kv_cache.stride(0), kv_cache.stride(1), B=512,
    )  # fmt: skip
