# breaks: It copies within the first layer.
def first_layer(key_caches, value_caches, block_mapping):
    source, target = block_mapping.T
    for caches in (key_caches, value_caches):
        for cache in caches:
            caches[0][target] = cache[source] if cache is caches[0] else caches[0][source]


# breaks: It leaves the values.
def keys_only(key_caches, value_caches, block_mapping):
    source, target = block_mapping.T
    for caches in (key_caches,):
        for cache in caches:
            cache[target] = cache[source]


# breaks: It copies each block to one other.
def one_target(key_caches, value_caches, block_mapping):
    source, target = block_mapping.T
    for caches in (key_caches, value_caches):
        for cache in caches:
            cache[target[:1]] = cache[source[:1]]


# breaks: It takes the second number of a pair for the source.
def pairs_reversed(key_caches, value_caches, block_mapping):
    source, target = block_mapping.T
    for caches in (key_caches, value_caches):
        for cache in caches:
            cache[source] = cache[target]
