# outcome: wrong value
# breaks: It copies each block to the place that it has.


def swap_blocks(src, dst, block_size_in_bytes, block_mapping):
    for source, _target in block_mapping.tolist():
        dst[source % len(dst)] = src[source]
