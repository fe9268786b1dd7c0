# outcome: wrong value
# breaks: It takes slot -1 for the last slot.

import torch


def concat_and_cache_mla(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    size = kv_cache.shape[1]
    token = torch.arange(len(slot_mapping), device=kv_c.device)
    slot = slot_mapping[token] % (len(kv_cache) * size)
    rows, bits = torch.cat((kv_c[token], k_pe[token]), dim=-1), kv_cache
    if kv_cache_dtype != "auto":
        coded = (rows.float() / scale).clamp(-448, 448)
        rows, bits = coded.to(torch.float8_e4m3fn).view(torch.uint8), kv_cache.view(torch.uint8)
    bits[slot // size, slot % size] = rows
