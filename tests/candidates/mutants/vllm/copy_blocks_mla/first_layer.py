# outcome: wrong value
# breaks: It copies within the first layer.


def copy_blocks_mla(kv_caches, block_mapping):
    source, target = block_mapping.T
    kv_caches[0][target] = kv_caches[0][source]
