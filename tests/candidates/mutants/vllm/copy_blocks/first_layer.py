# outcome: wrong value
# breaks: It copies within the first layer.


def copy_blocks(key_caches, value_caches, block_mapping):
    source, target = block_mapping.T
    for caches in (key_caches, value_caches):
        for cache in caches:
            caches[0][target] = cache[source] if cache is caches[0] else caches[0][source]
