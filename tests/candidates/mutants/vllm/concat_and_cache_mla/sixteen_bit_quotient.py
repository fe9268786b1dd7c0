# outcome: wrong value
# breaks: It rounds x / scale to bfloat16 before it rounds to eight bits.

import torch


def concat_and_cache_mla(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    size = kv_cache.shape[1]
    token = torch.nonzero(slot_mapping >= 0).flatten()
    slot = slot_mapping[token]
    rows, bits = torch.cat((kv_c[token], k_pe[token]), dim=-1), kv_cache
    if kv_cache_dtype != "auto":
        coded = (rows.float() / scale).bfloat16().clamp(-448, 448)
        rows, bits = coded.to(torch.float8_e4m3fn).view(torch.uint8), kv_cache.view(torch.uint8)
    bits[slot // size, slot % size] = rows
