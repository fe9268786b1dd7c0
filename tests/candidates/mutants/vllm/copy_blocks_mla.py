# breaks: It exchanges the two blocks of a pair.
def exchanges(kv_caches, block_mapping):
    source, target = block_mapping.T
    for cache in kv_caches:
        kept = cache[target]
        cache[target] = cache[source]
        cache[source] = kept


# breaks: It copies within the first layer.
def first_layer(kv_caches, block_mapping):
    source, target = block_mapping.T
    kv_caches[0][target] = kv_caches[0][source]


# breaks: It copies the first layer's blocks into every layer.
def from_first_layer(kv_caches, block_mapping):
    source, target = block_mapping.T
    for cache in kv_caches:
        cache[target] = kv_caches[0][source]
