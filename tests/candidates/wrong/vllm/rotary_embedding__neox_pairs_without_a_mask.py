# outcome: wrong value
# breaks: Pairs of neox style are a power of two, further lanes rotate what follows as well.

import triton
import triton.language as tl


@triton.jit
def rotate(
    pos_ptr,
    x_ptr,
    cache_ptr,
    heads,
    token_stride,
    head_stride,
    half,
    rot,
    NEOX: tl.constexpr,
    B: tl.constexpr,
):
    token, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    j = tl.arange(0, B)
    inside = j < half
    p = tl.load(pos_ptr + token)
    c = tl.load(cache_ptr + p * rot + j, mask=inside, other=0.0).to(tl.float32)
    s = tl.load(cache_ptr + p * rot + half + j, mask=inside, other=0.0).to(tl.float32)
    base = x_ptr + token * token_stride + head * head_stride
    if NEOX:
        first, second = base + j, base + j + half
        inside = j < B
    else:
        first, second = base + 2 * j, base + 2 * j + 1
    x = tl.load(first, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(second, mask=inside, other=0.0).to(tl.float32)
    tl.store(first, (x * c - y * s).to(x_ptr.dtype.element_ty), mask=inside)
    tl.store(second, (y * c + x * s).to(x_ptr.dtype.element_ty), mask=inside)


def rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox):
    tokens, rot = positions.numel(), cos_sin_cache.shape[1]
    for x in (query, key):
        if x is None:
            continue
        split = x.ndim == positions.ndim + 2
        heads = x.shape[-2] if split else x.shape[-1] // head_size
        strides = (x.stride(positions.ndim - 1), x.stride(-2) if split else head_size)
        rotate[(tokens * heads,)](
            positions, x, cos_sin_cache, heads, *strides, rot // 2, rot,
            NEOX=is_neox, B=triton.next_power_of_2(rot // 2),
        )  # fmt: skip
