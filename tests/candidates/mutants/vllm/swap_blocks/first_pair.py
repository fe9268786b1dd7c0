# outcome: wrong value
# breaks: It copies the first block to every place.


def swap_blocks(src, dst, block_size_in_bytes, block_mapping):
    for _source, target in block_mapping.tolist():
        dst[target] = src[block_mapping[0, 0]]
