# outcome: wrong value
# breaks: It copies half of each block.


def swap_blocks(src, dst, block_size_in_bytes, block_mapping):
    for source, target in block_mapping.tolist():
        dst[target, : dst.shape[1] // 2] = src[source, : dst.shape[1] // 2]
