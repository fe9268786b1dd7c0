# outcome: wrong value
# breaks: It rounds through float8.

import torch


def reshape_and_cache(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    size, x = key_cache.shape[3:]
    token = torch.nonzero(slot_mapping >= 0).flatten()
    slot = slot_mapping[token]
    block, place = slot // size, slot % size
    key_cache[block, :, :, place, :] = key[token].unflatten(-1, (-1, x))
    value_cache[block, :, :, place] = value[token].to(torch.float8_e4m3fn).to(value.dtype)
