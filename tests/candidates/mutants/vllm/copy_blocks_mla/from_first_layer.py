# outcome: wrong value
# breaks: It copies the first layer's blocks into every layer.


def copy_blocks_mla(kv_caches, block_mapping):
    source, target = block_mapping.T
    for cache in kv_caches:
        cache[target] = kv_caches[0][source]
