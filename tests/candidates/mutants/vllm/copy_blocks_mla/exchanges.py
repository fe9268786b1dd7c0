# outcome: wrong value
# breaks: It exchanges the two blocks of a pair.


def copy_blocks_mla(kv_caches, block_mapping):
    source, target = block_mapping.T
    for cache in kv_caches:
        kept = cache[target]
        cache[target] = cache[source]
        cache[source] = kept
