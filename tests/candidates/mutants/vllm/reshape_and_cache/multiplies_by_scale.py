# outcome: wrong value
# breaks: It multiplies by the scales.

import torch


def reshape_and_cache(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    size, x = key_cache.shape[3:]
    token = torch.nonzero(slot_mapping >= 0).flatten()
    slot = slot_mapping[token]
    block, place = slot // size, slot % size
    rows, columns = key[token], value[token]
    if kv_cache_dtype != "auto":
        rows, columns = (
            each.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)
            for each in ((key[token].float() * k_scale), (value[token].float() * v_scale))
        )
        key_cache, value_cache = key_cache.view(torch.uint8), value_cache.view(torch.uint8)
    key_cache[block, :, :, place, :] = rows.unflatten(-1, (-1, x))
    value_cache[block, :, :, place] = columns
