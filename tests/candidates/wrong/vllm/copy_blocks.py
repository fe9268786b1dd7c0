import torch
import triton
import triton.language as tl


@triton.jit
def copy_chunk(cache_ptr, mapping_ptr, words, CHUNK: tl.constexpr):
    pair = tl.program_id(0)
    source = tl.load(mapping_ptr + 2 * pair)
    target = tl.load(mapping_ptr + 2 * pair + 1)
    i = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK)
    tl.store(cache_ptr + target * words + i, tl.load(cache_ptr + source * words + i))


# breaks: Blocks are copied in chunks of 1024 words, without what is left behind the last whole one.
def whole_chunks_only(key_caches, value_caches, block_mapping):
    pairs = block_mapping.shape[0]
    for cache in [*key_caches, *value_caches]:
        words = cache[0].numel()
        bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[cache.element_size()]
        copy_chunk[(pairs, words // 1024)](cache.view(bits), block_mapping, words, CHUNK=1024)
