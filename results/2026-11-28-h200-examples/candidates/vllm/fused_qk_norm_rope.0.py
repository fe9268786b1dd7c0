"""fused_qk_norm_rope: RMS norm of each query and key head, then rotary position embedding, in place.

A program has some heads of one token. A head is held as two halves that rotation pairs with each other, and a rest that
is not rotated; all is computed in float32. One warp per program: all its loads come before its stores.
"""

import triton
import triton.language as tl


@triton.jit
def _weight(query_ptr, key_ptr, i, is_query):
    """Each head's norm weights: the queries' or the keys'."""
    query = tl.load(query_ptr + i).to(tl.float32)[None, :]
    return tl.where(is_query, query, tl.load(key_ptr + i).to(tl.float32)[None, :])


@triton.jit
def _norm_rope(
    qkv_ptr, query_weight_ptr, key_weight_ptr, cache_ptr, position_ptr, qkv_token, query_heads, heads, cache_position,
    epsilon,
    SIZE: tl.constexpr, ROTATED: tl.constexpr, NEOX: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """HEADS heads of one token; NEOX: element i is paired with i + half, otherwise 2 i with 2 i + 1."""
    groups = (heads - 1) // HEADS + 1
    token = (tl.program_id(0) // groups).to(tl.int64)
    head = (tl.program_id(0) % groups).to(tl.int64) * HEADS + tl.arange(0, HEADS)
    inside = (head < heads)[:, None]
    is_query = (head < query_heads)[:, None]
    at = qkv_ptr + token * qkv_token + (head * SIZE)[:, None]
    HALF: tl.constexpr = ROTATED // 2
    i = tl.arange(0, HALF)
    rotation = cache_ptr + tl.load(position_ptr + token) * cache_position + i
    cos = tl.load(rotation).to(tl.float32)[None, :]
    sin = tl.load(rotation + HALF).to(tl.float32)[None, :]
    if NEOX:
        first_i, second_i = i, i + HALF
        first = tl.load(at + first_i[None, :], mask=inside, other=0.0).to(tl.float32)
        second = tl.load(at + second_i[None, :], mask=inside, other=0.0).to(tl.float32)
    else:
        first_i, second_i = 2 * i, 2 * i + 1
        pairs = tl.load(at + tl.arange(0, ROTATED)[None, :], mask=inside, other=0.0).to(tl.float32)
        first, second = tl.split(tl.reshape(pairs, (HEADS, HALF, 2)))
    first_weight = _weight(query_weight_ptr, key_weight_ptr, first_i, is_query)
    second_weight = _weight(query_weight_ptr, key_weight_ptr, second_i, is_query)
    squares = tl.sum(first * first + second * second, axis=1)
    if ROTATED < SIZE:
        r = tl.arange(0, SIZE)
        in_rest = inside & (r >= ROTATED)[None, :]
        rest = tl.load(at + r[None, :], mask=in_rest, other=0.0).to(tl.float32)
        rest_weight = _weight(query_weight_ptr, key_weight_ptr, r, is_query)
        squares += tl.sum(rest * rest, axis=1)
    norm = tl.rsqrt(squares * (1.0 / SIZE) + epsilon)[:, None]
    first = first * norm * first_weight
    second = second * norm * second_weight
    dtype = qkv_ptr.dtype.element_ty
    new_first = (first * cos - second * sin).to(dtype)
    new_second = (second * cos + first * sin).to(dtype)
    if NEOX:
        tl.store(at + first_i[None, :], new_first, mask=inside)
        tl.store(at + second_i[None, :], new_second, mask=inside)
    else:
        pairs = tl.reshape(tl.join(new_first, new_second), (HEADS, ROTATED))
        tl.store(at + tl.arange(0, ROTATED)[None, :], pairs, mask=inside)
    if ROTATED < SIZE:
        tl.store(at + r[None, :], (rest * norm * rest_weight).to(dtype), mask=in_rest)


def fused_qk_norm_rope(
    qkv, num_heads_q, num_heads_k, num_heads_v, head_dim, eps, q_weight, k_weight, cos_sin_cache, is_neox, position_ids
):
    """qkv: (tokens, heads of q, k and v * head_dim); weights: (head_dim,); cos_sin_cache: (positions, rotated)."""
    tokens, heads = qkv.shape[0], num_heads_q + num_heads_k
    if tokens == 0 or heads == 0:
        return
    per_program = min(max(1, 1024 // head_dim), triton.next_power_of_2(heads))
    _norm_rope[(tokens * triton.cdiv(heads, per_program),)](
        qkv, q_weight, k_weight, cos_sin_cache, position_ids, qkv.stride(0), num_heads_q, heads,
        cos_sin_cache.stride(0), float(eps),
        SIZE=head_dim, ROTATED=cos_sin_cache.shape[1], NEOX=bool(is_neox), HEADS=per_program, num_warps=1,
    )  # fmt: skip
