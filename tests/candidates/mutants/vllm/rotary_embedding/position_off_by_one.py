# outcome: wrong value
# breaks: It uses the angle of the position before.

import torch


def rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox):
    angles = cos_sin_cache[(positions - 1).clamp(min=0)].double().unsqueeze(-2)
    cosine, sine = angles.chunk(2, -1)
    for x in (query, key):
        if x is not None:
            turn(x if x.ndim == positions.ndim + 2 else x.unflatten(-1, (-1, head_size)), cosine, sine, is_neox)


def turn(heads, cosine, sine, is_neox):
    half = cosine.shape[-1]
    if is_neox:
        a, b = heads[..., :half], heads[..., half : 2 * half]
    else:
        a, b = heads[..., 0 : 2 * half : 2], heads[..., 1 : 2 * half : 2]
    first, second = a * cosine - b * sine, b * cosine + a * sine
    a.copy_(first)
    b.copy_(second)
