# outcome: wrong value
# breaks: It takes slot -1 for the last slot.

import torch


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    size = key_cache.shape[1]
    token = torch.arange(len(slot_mapping), device=key.device)
    slot = slot_mapping[token] % (len(key_cache) * size)
    for x, cache, scale in ((key, key_cache, k_scale), (value, value_cache, v_scale)):
        rows, bits = x[token], cache
        if kv_cache_dtype != "auto":
            coded = (x[token].float() / scale).clamp(-448, 448)
            rows, bits = coded.to(torch.float8_e4m3fn).view(torch.uint8), cache.view(torch.uint8)
        bits[slot // size, slot % size] = rows
