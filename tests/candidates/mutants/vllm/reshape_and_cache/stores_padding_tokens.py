# outcome: wrong value
# breaks: It takes slot -1 for the last slot.

import torch


def reshape_and_cache(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    size, x = key_cache.shape[3:]
    token = torch.arange(len(slot_mapping), device=key.device)
    slot = slot_mapping[token]
    slot = slot % (len(key_cache) * size)
    block, place = slot // size, slot % size
    key_cache[block, :, :, place, :] = key[token].unflatten(-1, (-1, x))
    value_cache[block, :, :, place] = value[token]
