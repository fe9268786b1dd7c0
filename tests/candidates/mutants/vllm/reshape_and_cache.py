import torch


def store(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    """The right kernel."""
    size, x = key_cache.shape[3:]
    token = torch.nonzero(slot_mapping >= 0).flatten()
    slot = slot_mapping[token]
    block, place = slot // size, slot % size
    rows, columns = key[token], value[token]
    if kv_cache_dtype != "auto":
        rows, columns = (
            (each.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)
            for each, scale in ((rows, k_scale), (columns, v_scale))
        )
        key_cache, value_cache = key_cache.view(torch.uint8), value_cache.view(torch.uint8)
    key_cache[block, :, :, place, :] = rows.unflatten(-1, (-1, x))
    value_cache[block, :, :, place] = columns


# breaks: It clears the caches before it stores.
def clears_cache(key, value, key_cache, value_cache, *rest):
    key_cache.zero_()
    value_cache.zero_()
    store(key, value, key_cache, value_cache, *rest)


# breaks: It clears its key when it is done.
# outcome: input changed
def clears_key(key, *rest):
    store(key, *rest)
    key.zero_()


# breaks: It rounds through float8.
def eight_bits(key, value, *rest):
    store(key, value.to(torch.float8_e4m3fn).to(value.dtype), *rest)


# breaks: It stores the first head in the place of every head.
def first_head_only(key, value, *rest):
    store(key[:, :1].expand_as(key), value[:, :1].expand_as(value), *rest)


# breaks: It stores a key's elements as if the cache did not split them by x.
def flat_key_layout(key, value, key_cache, *rest):
    x = key_cache.shape[-1]
    store(key.unflatten(-1, (x, -1)).transpose(-1, -2).flatten(-2), value, key_cache, *rest)


# breaks: It stores tokens in the order in which they come.
def index_for_slot(key, value, key_cache, value_cache, slot_mapping, *rest):
    stored = slot_mapping >= 0
    order = torch.where(stored, stored.cumsum(0) - 1, -1)
    store(key, value, key_cache, value_cache, order, *rest)


# breaks: It forgets the last token.
def last_token(key, value, key_cache, value_cache, slot_mapping, *rest):
    store(key, value, key_cache, value_cache, slot_mapping[:-1], *rest)


# breaks: It marks the slots that it has served with -1.
# outcome: input changed
def marks_slots(key, value, key_cache, value_cache, slot_mapping, *rest):
    store(key, value, key_cache, value_cache, slot_mapping, *rest)
    slot_mapping.fill_(-1)


# breaks: It multiplies by the scales.
def multiplies_by_scale(*given):
    k_scale, v_scale = given[-2:]
    store(*given[:-2], 1 / k_scale, 1 / v_scale)


# breaks: It divides values by the scale of keys.
def one_scale(*given):
    k_scale = given[-2]
    store(*given[:-1], k_scale)


# breaks: It takes slot -1 for the last slot.
def stores_padding_tokens(key, value, key_cache, value_cache, slot_mapping, *rest):
    slots = len(key_cache) * key_cache.shape[3]
    store(key, value, key_cache, value_cache, slot_mapping % slots, *rest)


# breaks: It stores values as keys and keys as values.
def swapped(key, value, *rest):
    store(value, key, *rest)
