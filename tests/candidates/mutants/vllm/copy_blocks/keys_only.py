# outcome: wrong value
# breaks: It leaves the values.


def copy_blocks(key_caches, value_caches, block_mapping):
    source, target = block_mapping.T
    for caches in (key_caches,):
        for cache in caches:
            cache[target] = cache[source]
