"""copy_blocks_mla: copies blocks within the latent caches of all layers, up to 32 layers in one launch.

A program copies a chunk of one block of one layer, in the widest words that fit; the layers' addresses are arguments,
so that nothing has to be copied to the device before.
"""

import triton
import triton.language as tl


@triton.jit
def _copy(
    addresses, mapping_ptr, mapping_pair, mapping_side, words, chunks,
    BYTES: tl.constexpr, ALIGNED: tl.constexpr, LAYERS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """addresses: LAYERS integers; BYTES: of a word; ALIGNED: blocks begin and end at multiples of 16 bytes."""
    layer = tl.program_id(1)
    address = addresses[0].to(tl.int64)
    for i in tl.static_range(1, LAYERS):
        address = tl.where(layer == i, addresses[i].to(tl.int64), address)
    pair = tl.program_id(0) // chunks
    source = tl.load(mapping_ptr + pair.to(tl.int64) * mapping_pair)
    target = tl.load(mapping_ptr + pair.to(tl.int64) * mapping_pair + mapping_side)
    word: tl.constexpr = tl.int32 if BYTES == 4 else tl.int16 if BYTES == 2 else tl.int8
    base = address.to(tl.pointer_type(word))
    i = (tl.program_id(0) - pair * chunks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    from_at = base + source * words + i
    to_at = base + target * words + i
    if ALIGNED:
        from_at = tl.multiple_of(from_at, 16)
        to_at = tl.multiple_of(to_at, 16)
    tl.store(to_at, tl.load(from_at, mask=i < words), mask=i < words)


def copy_blocks_mla(kv_caches, block_mapping):
    """kv_caches: list of dense tensors (blocks, block_size, entry); block_mapping: (pairs, 2) int64, from and to."""
    pairs = block_mapping.shape[0]
    if pairs == 0:
        return
    alike = {}
    for cache in kv_caches:
        if cache.numel():
            alike.setdefault(cache.numel() // cache.shape[0] * cache.element_size(), []).append(cache.data_ptr())
    for size, addresses in alike.items():
        bits = size
        for address in addresses:
            bits |= address
        word = 4 if bits % 4 == 0 else 2 if bits % 2 == 0 else 1
        block = min(2048, max(128, triton.next_power_of_2(size // word)))
        chunks = triton.cdiv(size // word, block)
        for first in range(0, len(addresses), 32):
            part = addresses[first : first + 32]
            _copy[(pairs * chunks, len(part))](
                tuple(part + part[:1] * (32 - len(part))), block_mapping, block_mapping.stride(0),
                block_mapping.stride(1), size // word, chunks, BYTES=word, ALIGNED=bits % 16 == 0, LAYERS=32,
                BLOCK=block, num_warps=4,
            )  # fmt: skip
