# outcome: wrong value
# breaks: Elements are squared in qkv's dtype and only their sum is float32: float16 overflows from 256 on.

import torch


def fused_qk_norm_rope(
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
