import torch
import triton
import triton.language as tl


@triton.jit
def norm_rope(
    qkv_ptr, qw_ptr, kw_ptr, cache_ptr, pos_ptr, row, heads_q, eps, rot,
    HEAD: tl.constexpr, HALF: tl.constexpr, NEOX: tl.constexpr,
):  # fmt: skip
    token, head = tl.program_id(0), tl.program_id(1)
    base = qkv_ptr + token * row + head * HEAD
    i = tl.arange(0, HEAD)
    w_ptr = qw_ptr if head < heads_q else kw_ptr
    x = tl.load(base + i).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(tl.where(i < rot, x * x, 0.0), axis=0) / rot + eps)
    rest = i >= rot
    y = x * scale * tl.load(w_ptr + i).to(tl.float32)
    j = tl.arange(0, HALF)
    a, b = (j, j + HALF) if NEOX else (2 * j, 2 * j + 1)
    first = tl.load(base + a).to(tl.float32) * scale * tl.load(w_ptr + a).to(tl.float32)
    second = tl.load(base + b).to(tl.float32) * scale * tl.load(w_ptr + b).to(tl.float32)
    p = tl.load(pos_ptr + token)
    c = tl.load(cache_ptr + p * rot + j).to(tl.float32)
    s = tl.load(cache_ptr + p * rot + HALF + j).to(tl.float32)
    kind = qkv_ptr.dtype.element_ty
    tl.store(base + a, (first * c - second * s).to(kind))
    tl.store(base + b, (second * c + first * s).to(kind))
    tl.store(base + i, y.to(kind), mask=rest)


# breaks: The mean square is formed over the rotated elements, not over the head.
def root_of_the_rotated_part(
    qkv, num_heads_q, num_heads_k, num_heads_v, head_dim, eps, q_weight, k_weight, cos_sin_cache, is_neox, position_ids
):
    rot = cos_sin_cache.shape[1]
    grid = (qkv.shape[0], num_heads_q + num_heads_k)
    norm_rope[grid](
        qkv, q_weight, k_weight, cos_sin_cache, position_ids, qkv.shape[1], num_heads_q, float(eps), rot,
        HEAD=head_dim, HALF=rot // 2, NEOX=is_neox,
    )  # fmt: skip


# breaks: Elements are squared in qkv's dtype and only their sum is float32: float16 overflows from 256 on.
def squares_in_half(
    qkv, num_heads_q, num_heads_k, num_heads_v, head_dim, eps, q_weight, k_weight, cos_sin_cache, is_neox, position_ids
):
    half = cos_sin_cache.shape[1] // 2
    cos, sin = cos_sin_cache[position_ids, None].float().split(half, -1)
    heads = qkv.unflatten(1, (-1, head_dim))
    for x, weight in ((heads[:, :num_heads_q], q_weight), (heads[:, num_heads_q:-num_heads_v], k_weight)):
        mean = (x * x).sum(-1, keepdim=True, dtype=torch.float32) / head_dim
        y = x.float() * torch.rsqrt(mean + eps) * weight.float()
        turned = y[..., : 2 * half]
        a, b = turned.chunk(2, -1) if is_neox else (turned[..., ::2], turned[..., 1::2])
        both = (a * cos - b * sin, b * cos + a * sin)
        turned = torch.cat(both, -1) if is_neox else torch.stack(both, -1).flatten(-2)
        x.copy_(torch.cat((turned, y[..., 2 * half :]), -1))
