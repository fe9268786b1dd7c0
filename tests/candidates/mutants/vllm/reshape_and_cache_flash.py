import torch


def limited(scaled):
    return scaled.clamp(-448, 448)


def placed(bits, block, place, rows):
    bits[block, place] = rows


def store(
    key,
    value,
    key_cache,
    value_cache,
    slot_mapping,
    kv_cache_dtype,
    k_scale,
    v_scale,
    *,
    limited=limited,
    placed=placed,
):
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    size = key_cache.shape[1]
    token = torch.nonzero(slot_mapping >= 0).flatten()
    slot = slot_mapping[token]
    for x, cache, scale in ((key, key_cache, k_scale), (value, value_cache, v_scale)):
        rows, bits = x[token], cache
        if kv_cache_dtype != "auto":
            coded = limited(rows.float() / scale).to(torch.float8_e4m3fn)
            rows, bits = coded.view(torch.uint8), cache.view(torch.uint8)
        placed(bits, slot // size, slot % size, rows)


# breaks: It takes the blocks of a cache to lie one behind the other, heads inside.
# outcome: wrong value | input changed
def dense_blocks(*given):
    def placed(bits, block, place, rows):
        width, size = rows[0].numel(), bits.shape[1]
        flat = torch.as_strided(bits, (bits.shape[0] * size, width), (width, 1))
        flat[block * size + place] = rows.flatten(1)

    store(*given, placed=placed)


# breaks: It flushes the small codes to zero.
def flushes_denormals(*given):
    store(*given, limited=lambda scaled: torch.where(scaled.abs() < 2**-6, 0, limited(scaled)))


# breaks: It multiplies by the scale.
def multiplies_by_scale(*given):
    k_scale, v_scale = given[-2:]
    store(*given[:-2], 1 / k_scale, 1 / v_scale)


# breaks: It takes too large values for infinite, so that they become NaN.
def no_saturation(*given):
    store(*given, limited=lambda scaled: torch.where(scaled.abs() > 448, torch.nan, scaled))


# breaks: It divides values by the scale of keys.
def one_scale(*given):
    k_scale = given[-2]
    store(*given[:-1], k_scale)


# breaks: It takes slot -1 for the last slot.
def stores_padding_tokens(key, value, key_cache, value_cache, slot_mapping, *rest):
    slots = len(key_cache) * key_cache.shape[1]
    store(key, value, key_cache, value_cache, slot_mapping % slots, *rest)


# breaks: It cuts off what does not fit eight bits.
def truncates(*given):
    def cut_off(scaled):
        return (limited(scaled).view(torch.int32) & -0x100000).view(torch.float32)

    store(*given, limited=cut_off)
