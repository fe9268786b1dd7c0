import torch


def turned(a, b, cosine, sine):
    return a * cosine - b * sine, b * cosine + a * sine


def rotate(
    positions, query, key, head_size, cos_sin_cache, is_neox, *, turned=turned, chosen=lambda heads, rotated: heads
):
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    cosine, sine = cos_sin_cache[positions].double().unsqueeze(-2).chunk(2, -1)
    rotated = cos_sin_cache.shape[-1]
    for x in (query, key):
        if x is None:
            continue
        heads = chosen(x if x.ndim == positions.ndim + 2 else x.unflatten(-1, (-1, head_size)), rotated)
        if is_neox:
            a, b = heads[..., : rotated // 2], heads[..., rotated // 2 : rotated]
        else:
            a, b = heads[..., 0:rotated:2], heads[..., 1:rotated:2]
        first, second = turned(a, b, cosine, sine)
        a.copy_(first)
        b.copy_(second)


# breaks: It pairs the halves whatever is_neox says.
def always_neox(positions, query, key, head_size, cos_sin_cache, is_neox):
    rotate(positions, query, key, head_size, cos_sin_cache, True)


# breaks: It rounds the angles to bfloat16.
def bfloat16_angles(positions, query, key, head_size, cos_sin_cache, is_neox):
    rotate(positions, query, key, head_size, cos_sin_cache.bfloat16(), is_neox)


# breaks: It takes the number of the token for its position.
def index_for_position(positions, query, key, head_size, cos_sin_cache, is_neox):
    places = torch.arange(positions.numel(), device=positions.device).view_as(positions) % len(cos_sin_cache)
    rotate(places, query, key, head_size, cos_sin_cache, is_neox)


# breaks: It leaves the last head unturned where there are several.
def last_head(*given):
    rotate(*given, chosen=lambda heads, rotated: heads[..., :-1, :] if heads.shape[-2] > 1 else heads)


# breaks: It uses the angle of the position before.
def position_off_by_one(positions, *rest):
    rotate((positions - 1).clamp(min=0), *rest)


# breaks: It computes the second half from the first half's new values.
def reads_written_half(*given):
    def turned(a, b, cosine, sine):
        a.copy_(a * cosine - b * sine)
        return a, b * cosine + a * sine

    rotate(*given, turned=turned)


# breaks: It counts its positions up.
# outcome: input changed
def shifts_positions(positions, *rest):
    rotate(positions, *rest)
    positions.add_(1)


# breaks: It turns by the negative angle.
def turns_backwards(*given):
    rotate(*given, turned=lambda a, b, cosine, sine: turned(a, b, cosine, -sine))


# breaks: It clears the elements from rot_dim on.
def zeroes_rest(*given):
    def cleared(heads, rotated):
        heads[..., rotated:] = 0
        return heads

    rotate(*given, chosen=cleared)


# breaks: It fills what it should turn with zeros.
def zeros(*given):
    rotate(*given, turned=lambda a, b, cosine, sine: (torch.zeros_like(a), torch.zeros_like(b)))
