import torch


def norm_rope(
    qkv, num_heads_q, num_heads_k, num_heads_v, head_dim, eps, q_weight, k_weight, cos_sin_cache, is_neox, position_ids,
    *, averaged=-1, steps=("norm", "rope"),
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    heads = qkv.unflatten(-1, (-1, head_dim))[:, : num_heads_q + num_heads_k]
    x = heads.double()
    weight = torch.stack([q_weight] * num_heads_q + [k_weight] * num_heads_k).double()
    cosine, sine = cos_sin_cache[position_ids].double().unsqueeze(1).chunk(2, -1)
    for step in steps:
        if step == "norm":
            x = x / torch.sqrt((x * x).mean(averaged, keepdim=True) + eps) * weight
        else:
            rotate(x, cosine, sine, is_neox)
    heads.copy_(x)


def rotate(x, cosine, sine, is_neox):
    half = cosine.shape[-1]
    if is_neox:
        a, b = x[..., :half], x[..., half : 2 * half]
    else:
        a, b = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
    first, second = a * cosine - b * sine, b * cosine + a * sine
    a.copy_(first)
    b.copy_(second)


# breaks: It takes the number of the token for its position.
def index_for_position(*given):
    qkv, cos_sin_cache = given[0], given[8]
    norm_rope(*given[:-1], torch.arange(len(qkv), device=qkv.device) % len(cos_sin_cache))


# breaks: It takes the mean over all heads of a token.
def norm_over_heads(*given):
    norm_rope(*given, averaged=(-1, -2))


# breaks: It weights key heads as query heads.
def one_weight(*given):
    q_weight = given[6]
    norm_rope(*given[:7], q_weight, *given[8:])


# breaks: It rotates before it normalises.
def rotates_first(*given):
    norm_rope(*given, steps=("rope", "norm"))


# breaks: It normalises and rotates the value heads, too.
def touches_values(qkv, num_heads_q, num_heads_k, num_heads_v, *rest):
    norm_rope(qkv, num_heads_q, num_heads_k + num_heads_v, num_heads_v, *rest)
