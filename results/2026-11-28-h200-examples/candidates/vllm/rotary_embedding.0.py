"""rotary_embedding: turns pairs of a head's elements by an angle that depends on the token's position, in place.

A pair is (i, i + half) with is_neox and (2 i, 2 i + 1) without; elements from rot_dim on stay as they are.
"""

import triton
import triton.language as tl


@triton.jit
def _turn(
    position_ptr, x_ptr, cache_ptr, rows, heads, head_size, token_stride, head_stride, cache_stride, half,
    NEOX: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """ROWS rows, a row being one head of one token; the cache holds half cosines, then half sines per position."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    pair = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (pair < half)
    token = row // heads
    position = tl.load(position_ptr + token, mask=row < rows, other=0)
    cosine = tl.load(cache_ptr + position * cache_stride + pair, mask=inside, other=0.0).to(tl.float32)
    sine = tl.load(cache_ptr + position * cache_stride + half + pair, mask=inside, other=0.0).to(tl.float32)
    head = x_ptr + token * token_stride + row % heads * head_stride
    if NEOX:
        a = tl.load(head + pair, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(head + half + pair, mask=inside, other=0.0).to(tl.float32)
        tl.store(head + pair, (a * cosine - b * sine).to(x_ptr.dtype.element_ty), mask=inside)
        tl.store(head + half + pair, (b * cosine + a * sine).to(x_ptr.dtype.element_ty), mask=inside)
    else:
        # Both halves of a pair are neighbours: one load and one store of whole words, taken apart in registers.
        i = tl.arange(0, 2 * BLOCK)[None, :]
        inside = (row < rows) & (i < 2 * half)
        both = tl.load(head + i, mask=inside, other=0.0).to(tl.float32)
        a, b = tl.split(tl.reshape(both, (ROWS, BLOCK, 2)))
        both = tl.join(a * cosine - b * sine, b * cosine + a * sine)
        both = tl.reshape(both, (ROWS, 2 * BLOCK)).to(x_ptr.dtype.element_ty)
        tl.store(head + i, both, mask=inside)


def rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox):
    """query, key: (..., heads * head_size) or (..., heads, head_size), changed in place; key may be None.

    positions: int64, one per token; cos_sin_cache: (positions, rot_dim) with rot_dim <= head_size.
    """
    tokens = positions.numel()
    half = cos_sin_cache.shape[1] // 2
    block = triton.next_power_of_2(half)
    for x in (query, key):
        if x is None or x.numel() == 0:
            continue
        flat = x.ndim == positions.ndim + 1
        heads = x.shape[-1] // head_size if flat else x.shape[-2]
        head_stride = head_size if flat else x.stride(-2)
        token_stride = x.stride(positions.ndim - 1)
        rows = tokens * heads
        per = max(1, min((1024 if x.is_cuda else 1 << 17) // block, triton.next_power_of_2(rows)))
        _turn[(triton.cdiv(rows, per),)](
            positions, x, cos_sin_cache, rows, heads, head_size, token_stride, head_stride,
            cos_sin_cache.stride(0), half, NEOX=bool(is_neox), ROWS=per, BLOCK=block, num_warps=4,
        )  # fmt: skip
