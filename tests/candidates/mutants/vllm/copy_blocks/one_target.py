# outcome: wrong value
# breaks: It copies each block to one other.


def copy_blocks(key_caches, value_caches, block_mapping):
    source, target = block_mapping.T
    for caches in (key_caches, value_caches):
        for cache in caches:
            cache[target[:1]] = cache[source[:1]]
