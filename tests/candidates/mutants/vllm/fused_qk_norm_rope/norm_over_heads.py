# outcome: wrong value
# breaks: It takes the mean over all heads of a token.

import torch


def fused_qk_norm_rope(
    qkv,
    num_heads_q,
    num_heads_k,
    num_heads_v,
    head_dim,
    eps,
    q_weight,
    k_weight,
    cos_sin_cache,
    is_neox,
    position_ids,
):
    heads = qkv.unflatten(-1, (-1, head_dim))[:, : num_heads_q + num_heads_k]
    x = heads.double()
    weight = torch.stack([q_weight] * num_heads_q + [k_weight] * (num_heads_q + num_heads_k - num_heads_q)).double()
    mean = (x * x).mean((-1, -2), keepdim=True)
    x = x / torch.sqrt(mean + eps) * weight
    cosine, sine = cos_sin_cache[position_ids].double().unsqueeze(1).chunk(2, -1)
    half = cosine.shape[-1]
    if is_neox:
        a, b = x[..., :half], x[..., half : 2 * half]
    else:
        a, b = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
    first, second = a * cosine - b * sine, b * cosine + a * sine
    a.copy_(first)
    b.copy_(second)
    heads.copy_(x)
