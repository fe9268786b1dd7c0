import torch


# breaks: It multiplies by the scale.
def multiplies_by_scale(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    size = kv_cache.shape[1]
    token = torch.nonzero(slot_mapping >= 0).flatten()
    slot = slot_mapping[token]
    rows, bits = torch.cat((kv_c[token], k_pe[token]), dim=-1), kv_cache
    if kv_cache_dtype != "auto":
        coded = (rows.float() * scale).clamp(-448, 448)
        rows, bits = coded.to(torch.float8_e4m3fn).view(torch.uint8), kv_cache.view(torch.uint8)
    bits[slot // size, slot % size] = rows


# breaks: It stores the rotary key in front.
def rotary_first(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    size = kv_cache.shape[1]
    token = torch.nonzero(slot_mapping >= 0).flatten()
    slot = slot_mapping[token]
    rows, bits = torch.cat((k_pe[token], kv_c[token]), dim=-1), kv_cache
    if kv_cache_dtype != "auto":
        coded = (rows.float() / scale).clamp(-448, 448)
        rows, bits = coded.to(torch.float8_e4m3fn).view(torch.uint8), kv_cache.view(torch.uint8)
    bits[slot // size, slot % size] = rows


# breaks: It drops padding tokens and stores the others in the slots of the first.
def shifts_after_padding(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    size = kv_cache.shape[1]
    token = torch.arange(int((slot_mapping >= 0).sum()), device=kv_c.device)
    slot = slot_mapping[slot_mapping >= 0]
    rows, bits = torch.cat((kv_c[token], k_pe[token]), dim=-1), kv_cache
    if kv_cache_dtype != "auto":
        coded = (rows.float() / scale).clamp(-448, 448)
        rows, bits = coded.to(torch.float8_e4m3fn).view(torch.uint8), kv_cache.view(torch.uint8)
    bits[slot // size, slot % size] = rows


# breaks: It rounds x / scale to bfloat16 before it rounds to eight bits.
def sixteen_bit_quotient(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    size = kv_cache.shape[1]
    token = torch.nonzero(slot_mapping >= 0).flatten()
    slot = slot_mapping[token]
    rows, bits = torch.cat((kv_c[token], k_pe[token]), dim=-1), kv_cache
    if kv_cache_dtype != "auto":
        coded = (rows.float() / scale).bfloat16().clamp(-448, 448)
        rows, bits = coded.to(torch.float8_e4m3fn).view(torch.uint8), kv_cache.view(torch.uint8)
    bits[slot // size, slot % size] = rows


# breaks: It takes slot -1 for the last slot.
def stores_padding_tokens(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    size = kv_cache.shape[1]
    token = torch.arange(len(slot_mapping), device=kv_c.device)
    slot = slot_mapping[token] % (len(kv_cache) * size)
    rows, bits = torch.cat((kv_c[token], k_pe[token]), dim=-1), kv_cache
    if kv_cache_dtype != "auto":
        coded = (rows.float() / scale).clamp(-448, 448)
        rows, bits = coded.to(torch.float8_e4m3fn).view(torch.uint8), kv_cache.view(torch.uint8)
    bits[slot // size, slot % size] = rows
