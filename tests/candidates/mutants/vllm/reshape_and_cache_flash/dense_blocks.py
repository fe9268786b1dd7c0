# outcome: wrong value | input changed
# breaks: It takes the blocks of a cache to lie one behind the other, heads inside.

import torch


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    token = torch.nonzero(slot_mapping >= 0).flatten()
    slot = slot_mapping[token]
    for x, cache, scale in ((key, key_cache, k_scale), (value, value_cache, v_scale)):
        rows, bits = x[token], cache
        if kv_cache_dtype != "auto":
            coded = (x[token].float() / scale).clamp(-448, 448)
            rows, bits = coded.to(torch.float8_e4m3fn).view(torch.uint8), cache.view(torch.uint8)
        flat = torch.as_strided(bits, (cache.shape[0] * cache.shape[1], rows[0].numel()), (rows[0].numel(), 1))
        flat[slot] = rows.flatten(1)
