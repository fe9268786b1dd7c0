# outcome: wrong value
# breaks: It takes the second number of a pair for the source.


def copy_blocks(key_caches, value_caches, block_mapping):
    source, target = block_mapping.T
    for caches in (key_caches, value_caches):
        for cache in caches:
            cache[source] = cache[target]
