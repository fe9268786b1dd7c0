import triton
import triton.language as tl


@triton.jit
def rotate_half_of_the_head(
    pos_ptr,
    x_ptr,
    cache_ptr,
    heads,
    token_stride,
    head_stride,
    half,
    rot,
    head_half,
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
        first, second = base + j, base + j + head_half
    else:
        first, second = base + 2 * j, base + 2 * j + 1
    x = tl.load(first, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(second, mask=inside, other=0.0).to(tl.float32)
    tl.store(first, (x * c - y * s).to(x_ptr.dtype.element_ty), mask=inside)
    tl.store(second, (y * c + x * s).to(x_ptr.dtype.element_ty), mask=inside)


# breaks: Pairs lie half a head apart, not half of rot_dim; right where all of a head is rotated.
def half_of_the_head(positions, query, key, head_size, cos_sin_cache, is_neox):
    tokens, rot = positions.numel(), cos_sin_cache.shape[1]
    for x in (query, key):
        if x is None:
            continue
        split = x.ndim == positions.ndim + 2
        heads = x.shape[-2] if split else x.shape[-1] // head_size
        strides = (x.stride(positions.ndim - 1), x.stride(-2) if split else head_size)
        rotate_half_of_the_head[(tokens * heads,)](
            positions, x, cos_sin_cache, heads, *strides, rot // 2, rot, head_size // 2,
            NEOX=is_neox, B=triton.next_power_of_2(rot // 2),
        )  # fmt: skip


@triton.jit
def rope(pos_ptr, x_ptr, cache_ptr, heads, limit, token_stride, head_stride, half, NEOX: tl.constexpr, B: tl.constexpr):
    token = tl.program_id(0)
    j = tl.arange(0, B)
    p = tl.load(pos_ptr + token)
    c = tl.load(cache_ptr + p * 2 * half + j, mask=j < half, other=0.0).to(tl.float32)
    s = tl.load(cache_ptr + p * 2 * half + half + j, mask=j < half, other=0.0).to(tl.float32)
    for head in range(0, heads):
        base = token * token_stride + head * head_stride
        a = base + (j if NEOX else 2 * j)
        b = base + (j + half if NEOX else 2 * j + 1)
        inside = (j < half) & (b < limit)
        x = tl.load(x_ptr + a, mask=inside, other=0.0).to(tl.float32)
        y = tl.load(x_ptr + b, mask=inside, other=0.0).to(tl.float32)
        tl.store(x_ptr + a, (x * c - y * s).to(x_ptr.dtype.element_ty), mask=inside)
        tl.store(x_ptr + b, (y * c + x * s).to(x_ptr.dtype.element_ty), mask=inside)


# breaks: The key is taken to have as many heads as the query.
def heads_of_the_query_for_the_key(positions, query, key, head_size, cos_sin_cache, is_neox):
    tokens, half = positions.numel(), cos_sin_cache.shape[1] // 2
    split = query.ndim == positions.ndim + 2
    heads = query.shape[-2] if split else query.shape[-1] // head_size
    for x in (query, key):
        if x is not None:
            token_stride = x.stride(positions.ndim - 1)
            head_stride = x.stride(-2) if split else head_size
            limit = (tokens - 1) * token_stride + x.shape[-1] * (x.shape[-2] if split else 1)
            grid = (tokens,)
            block = triton.next_power_of_2(half)
            rope[grid](
                positions, x, cos_sin_cache, heads, limit, token_stride, head_stride, half, NEOX=is_neox, B=block
            )


@triton.jit
def rotate_neox_pairs_without_a_mask(
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


# breaks: Pairs of neox style are a power of two, further lanes rotate what follows as well.
def neox_pairs_without_a_mask(positions, query, key, head_size, cos_sin_cache, is_neox):
    tokens, rot = positions.numel(), cos_sin_cache.shape[1]
    for x in (query, key):
        if x is None:
            continue
        split = x.ndim == positions.ndim + 2
        heads = x.shape[-2] if split else x.shape[-1] // head_size
        strides = (x.stride(positions.ndim - 1), x.stride(-2) if split else head_size)
        rotate_neox_pairs_without_a_mask[(tokens * heads,)](
            positions, x, cos_sin_cache, heads, *strides, rot // 2, rot,
            NEOX=is_neox, B=triton.next_power_of_2(rot // 2),
        )  # fmt: skip
