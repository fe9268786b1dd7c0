# breaks: It copies the first block to every place.
def first_pair(src, dst, block_size_in_bytes, block_mapping):
    for _source, target in block_mapping.tolist():
        dst[target] = src[block_mapping[0, 0]]


# breaks: It copies half of each block.
def half_blocks(src, dst, block_size_in_bytes, block_mapping):
    for source, target in block_mapping.tolist():
        dst[target, : dst.shape[1] // 2] = src[source, : dst.shape[1] // 2]


# breaks: It takes the second number of a pair for the source.
def pairs_reversed(src, dst, block_size_in_bytes, block_mapping):
    for source, target in block_mapping.tolist():
        dst[source % len(dst)] = src[target % len(src)]


# breaks: It copies each block to the place that it has.
def same_places(src, dst, block_size_in_bytes, block_mapping):
    for source, _target in block_mapping.tolist():
        dst[source % len(dst)] = src[source]
