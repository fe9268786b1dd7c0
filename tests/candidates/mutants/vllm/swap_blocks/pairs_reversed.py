# outcome: wrong value
# breaks: It takes the second number of a pair for the source.


def swap_blocks(src, dst, block_size_in_bytes, block_mapping):
    for source, target in block_mapping.tolist():
        dst[source % len(dst)] = src[target % len(src)]
