"""reshape_and_cache: puts each token's key and value into its slot of the paged caches; a negative slot is skipped.

Keys lie as (blocks, heads, head_size / x, block_size, x), values as (blocks, heads, head_size, block_size). With few
tokens a program takes some of them, one head of each. Where the tokens may fill much of the caches, a program takes a
block instead, one head of it, whose places lie side by side; a first kernel notes which token goes to which slot.
Caches of float8_e4m3fn are written as bytes.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _e4m3(x, scale):
    """The byte of float8_e4m3fn nearest to x / scale, ties to even, saturated; NaN stays NaN."""
    x = x.to(tl.float32) / scale
    x = tl.where(x > 448.0, 448.0, x)
    x = tl.where(x < -448.0, -448.0, x)
    return x.to(tl.float8e4nv).to(tl.uint8, bitcast=True)


@triton.jit
def _copy(
    key_ptr, value_ptr, key_to, value_to, k_scale_ptr, v_scale_ptr, token, live, head,
    key_token, key_head, key_d, value_token, value_head, value_d,
    SIZE: tl.constexpr, HEAD: tl.constexpr, PADDED: tl.constexpr, X: tl.constexpr, FP8: tl.constexpr,
):  # fmt: skip
    """One head of the live tokens to where key_to and value_to point; HEAD elements, PADDED is a power of two."""
    token = tl.where(live, token, 0).to(tl.int64)
    part = tl.arange(0, PADDED // X)[:, None, None]
    x = tl.arange(0, X)[None, None, :]
    d = tl.arange(0, PADDED)[:, None]
    key_at = key_ptr + head * key_head + (token * key_token)[None, :, None] + (part * X + x) * key_d
    # x >= 0 always holds. It gives the mask its whole shape; without it the slots are read once more.
    key_live = live[None, :, None] & (part < HEAD // X) & (x >= 0)
    value_at = value_ptr + head * value_head + (token * value_token)[None, :] + d * value_d
    value_live = live[None, :] & (d < HEAD)
    key = tl.load(key_at, mask=key_live, other=0)
    value = tl.load(value_at, mask=value_live, other=0)
    if FP8:
        key = _e4m3(key, tl.load(k_scale_ptr))
        value = _e4m3(value, tl.load(v_scale_ptr))
    tl.store(key_to[None, :, None] + (part * (SIZE * X) + x), key, mask=key_live)
    tl.store(value_to[None, :] + d * SIZE, value, mask=value_live)


@triton.jit
def _scatter(
    key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slot_ptr, k_scale_ptr, v_scale_ptr, tokens, heads, slot_stride,
    key_token, key_head, key_d, value_token, value_head, value_d, key_block, value_block,
    SIZE: tl.constexpr, HEAD: tl.constexpr, PADDED: tl.constexpr, X: tl.constexpr, FP8: tl.constexpr,
    TOKENS: tl.constexpr,
):  # fmt: skip
    """One head of TOKENS tokens into blocks of SIZE."""
    head = (tl.program_id(0) % heads).to(tl.int64)
    token = tl.program_id(0) // heads * TOKENS + tl.arange(0, TOKENS)
    slot = tl.load(slot_ptr + token.to(tl.int64) * slot_stride, mask=token < tokens, other=-1)
    block, place = slot // SIZE, slot % SIZE
    key_to = key_cache_ptr + block * key_block + head * (HEAD * SIZE) + place * X
    value_to = value_cache_ptr + block * value_block + head * (HEAD * SIZE) + place
    _copy(
        key_ptr, value_ptr, key_to, value_to, k_scale_ptr, v_scale_ptr, token, (token < tokens) & (slot >= 0), head,
        key_token, key_head, key_d, value_token, value_head, value_d, SIZE, HEAD, PADDED, X, FP8,
    )  # fmt: skip


@triton.jit
def _note_tokens(slot_ptr, token_ptr, tokens, slot_stride, BLOCK: tl.constexpr):
    """Each slot's token."""
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    slot = tl.load(slot_ptr + token.to(tl.int64) * slot_stride, mask=token < tokens, other=-1)
    tl.store(token_ptr + slot, token, mask=(token < tokens) & (slot >= 0))


@triton.jit
def _fill(
    key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slot_ptr, token_ptr, k_scale_ptr, v_scale_ptr, tokens, heads,
    slot_stride, key_token, key_head, key_d, value_token, value_head, value_d, key_block, value_block,
    SIZE: tl.constexpr, HEAD: tl.constexpr, PADDED: tl.constexpr, X: tl.constexpr, FP8: tl.constexpr,
    PLACES: tl.constexpr,
):  # fmt: skip
    """One head of a block of SIZE places; PLACES is the next power of two."""
    head = (tl.program_id(0) % heads).to(tl.int64)
    block = (tl.program_id(0) // heads).to(tl.int64)
    place = tl.arange(0, PLACES)
    slot = block * SIZE + place
    token = tl.load(token_ptr + slot, mask=place < SIZE, other=-1)
    # Of a slot without a token anything may be noted, so the token is asked for its slot.
    live = (place < SIZE) & (token >= 0) & (token < tokens)
    live = live & (tl.load(slot_ptr + token.to(tl.int64) * slot_stride, mask=live, other=-1) == slot)
    key_to = key_cache_ptr + block * key_block + head * (HEAD * SIZE) + place * X
    # No store may span places, as any may be empty. tl.where hides from the compiler that they lie side by side, or it
    # would arrange values along them, at the cost of reading more.
    value_to = value_cache_ptr + block * value_block + head * (HEAD * SIZE) + tl.where(live, place, 0)
    _copy(
        key_ptr, value_ptr, key_to, value_to, k_scale_ptr, v_scale_ptr, token, live, head,
        key_token, key_head, key_d, value_token, value_head, value_d, SIZE, HEAD, PADDED, X, FP8,
    )  # fmt: skip


def reshape_and_cache(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    """key, value: (tokens, heads, head_size), at any strides; slot_mapping: int64, block * block_size + place.

    kv_cache_dtype 'auto' keeps the dtype, so the scales have nothing to scale; otherwise the caches are fp8.
    """
    tokens, (heads, head_size) = slot_mapping.shape[0], key.shape[1:]
    if tokens == 0 or key.numel() == 0 or key_cache.numel() == 0:
        return
    fp8 = kv_cache_dtype != "auto"
    if fp8:
        key_cache, value_cache = key_cache.view(torch.uint8), value_cache.view(torch.uint8)
    blocks, (block_size, x) = key_cache.shape[0], key_cache.shape[3:]
    strides = (*key.stride(), *value.stride(), key_cache.stride(0), value_cache.stride(0))
    sizes = {"SIZE": block_size, "HEAD": head_size, "PADDED": triton.next_power_of_2(head_size), "X": x, "FP8": fp8}
    if tokens >= 256 and blocks * block_size <= 4 * tokens and block_size <= 256:
        token_of_slot = torch.empty(blocks * block_size, dtype=torch.int32, device=key.device)
        _note_tokens[(triton.cdiv(tokens, 256),)](
            slot_mapping, token_of_slot, tokens, slot_mapping.stride(0), BLOCK=256, num_warps=4
        )
        _fill[(blocks * heads,)](
            key, value, key_cache, value_cache, slot_mapping, token_of_slot, k_scale, v_scale, tokens, heads,
            slot_mapping.stride(0), *strides, **sizes, PLACES=triton.next_power_of_2(block_size), num_warps=4,
        )  # fmt: skip
    else:
        per_program = 16 if tokens > 4 else 4
        _scatter[(triton.cdiv(tokens, per_program) * heads,)](
            key, value, key_cache, value_cache, slot_mapping, k_scale, v_scale, tokens, heads,
            slot_mapping.stride(0), *strides, **sizes, TOKENS=per_program, num_warps=4,
        )  # fmt: skip
