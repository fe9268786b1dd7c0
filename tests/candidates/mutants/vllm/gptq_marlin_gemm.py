import torch

SINGLE = [2 * i + j for i in range(4) for j in (0, 1, 8, 9, 16, 17, 24, 25)]


def fields(words, bits):
    shifts = torch.arange(0, 32, bits, device=words.device)
    return (words.long()[..., None] >> shifts & (1 << bits) - 1).flatten(-2)


def unpacked(packed, bits):
    """(rows, n) of words in tiles of 16 rows and 64 columns."""
    order = (0, 2, 4, 6, 1, 3, 5, 7) if bits == 4 else (0, 2, 1, 3, 4, 6, 5, 7)
    places = []
    for thread in range(32):
        for warp in range(4):
            column = 16 * warp + thread // 4
            held = [(2 * (thread % 4) + i) * 64 + column + 8 * j for j in (0, 1) for i in (0, 1, 8, 9)]
            places += [held[i] for i in order]
    stream = fields(packed.reshape(-1, 32 * bits), bits)
    tiles = torch.empty_like(stream)
    tiles[:, places] = stream
    rows, n = packed.shape[0] * 16, packed.shape[1] * 2 // bits
    return tiles.reshape(rows // 16, n // 64, 16, 64).permute(0, 2, 1, 3).reshape(rows, n)


def reordered(values, order):
    """Place i of every len(order) columns holds column order[i]: bring them back."""
    back = [order.index(i) for i in range(len(order))]
    return values.reshape(len(values), -1, len(order))[..., back].reshape(values.shape)


# breaks: It adds the bias as it is stored.
def plain_bias(a, c, packed, bias, scales, a_scales, global_scale, zeros, g_idx, perm, workspace, type_id, *rest):
    k = a.shape[1]
    bits = 2 * packed.shape[1] // scales.shape[1]
    zero = 8 if type_id == 1125899907892224 else 128
    group = torch.arange(k, device=a.device) // (k // len(scales)) if g_idx is None else g_idx.long()
    if zeros is not None:
        zero = (
            reordered(
                reordered(fields(zeros, 4), [0, 2, 4, 6, 1, 3, 5, 7]), [i + 8 * j for i in range(8) for j in range(8)]
            )
        )[group]
    weights = (unpacked(packed, bits) - zero) * reordered(
        scales, [[i + 8 * j for i in range(8) for j in range(8)], SINGLE][len(scales) == 1]
    )[group]
    if perm is not None:
        a = a[:, perm.long()]
    product = a.float() @ weights.float()
    return (product if bias is None else product + bias).to(a.dtype)


# breaks: It reads the zero points without bringing back the order of the eight in a word.
def plain_zero_points(
    a, c, packed, bias, scales, a_scales, global_scale, zeros, g_idx, perm, workspace, type_id, *rest
):
    k = a.shape[1]
    bits = 2 * packed.shape[1] // scales.shape[1]
    zero = 8 if type_id == 1125899907892224 else 128
    group = torch.arange(k, device=a.device) // (k // len(scales)) if g_idx is None else g_idx.long()
    if zeros is not None:
        zero = (reordered(fields(zeros, 4), [i + 8 * j for i in range(8) for j in range(8)]))[group]
    weights = (unpacked(packed, bits) - zero) * reordered(
        scales, [[i + 8 * j for i in range(8) for j in range(8)], SINGLE][len(scales) == 1]
    )[group]
    if perm is not None:
        a = a[:, perm.long()]
    product = a.float() @ weights.float()
    return (product if bias is None else product + reordered(bias[None], SINGLE)).to(a.dtype)


# breaks: It reads the scales of several groups in the order of a single one.
def scales_of_one_group(
    a, c, packed, bias, scales, a_scales, global_scale, zeros, g_idx, perm, workspace, type_id, *rest
):
    k = a.shape[1]
    bits = 2 * packed.shape[1] // scales.shape[1]
    zero = 8 if type_id == 1125899907892224 else 128
    group = torch.arange(k, device=a.device) // (k // len(scales)) if g_idx is None else g_idx.long()
    if zeros is not None:
        zero = (
            reordered(
                reordered(fields(zeros, 4), [0, 2, 4, 6, 1, 3, 5, 7]), [i + 8 * j for i in range(8) for j in range(8)]
            )
        )[group]
    weights = (unpacked(packed, bits) - zero) * reordered(scales, SINGLE)[group]
    if perm is not None:
        a = a[:, perm.long()]
    product = a.float() @ weights.float()
    return (product if bias is None else product + reordered(bias[None], SINGLE)).to(a.dtype)


# breaks: It reads the scales of a single group in the order of several.
def scales_of_several_groups(
    a, c, packed, bias, scales, a_scales, global_scale, zeros, g_idx, perm, workspace, type_id, *rest
):
    k = a.shape[1]
    bits = 2 * packed.shape[1] // scales.shape[1]
    zero = 8 if type_id == 1125899907892224 else 128
    group = torch.arange(k, device=a.device) // (k // len(scales)) if g_idx is None else g_idx.long()
    if zeros is not None:
        zero = (
            reordered(
                reordered(fields(zeros, 4), [0, 2, 4, 6, 1, 3, 5, 7]), [i + 8 * j for i in range(8) for j in range(8)]
            )
        )[group]
    weights = (unpacked(packed, bits) - zero) * reordered(scales, [i + 8 * j for i in range(8) for j in range(8)])[
        group
    ]
    if perm is not None:
        a = a[:, perm.long()]
    product = a.float() @ weights.float()
    return (product if bias is None else product + reordered(bias[None], SINGLE)).to(a.dtype)


# breaks: It applies the order of the activations the other way round.
def undoes_order(a, c, packed, bias, scales, a_scales, global_scale, zeros, g_idx, perm, workspace, type_id, *rest):
    k = a.shape[1]
    bits = 2 * packed.shape[1] // scales.shape[1]
    zero = 8 if type_id == 1125899907892224 else 128
    group = torch.arange(k, device=a.device) // (k // len(scales)) if g_idx is None else g_idx.long()
    if zeros is not None:
        zero = (
            reordered(
                reordered(fields(zeros, 4), [0, 2, 4, 6, 1, 3, 5, 7]), [i + 8 * j for i in range(8) for j in range(8)]
            )
        )[group]
    weights = (unpacked(packed, bits) - zero) * reordered(
        scales, [[i + 8 * j for i in range(8) for j in range(8)], SINGLE][len(scales) == 1]
    )[group]
    if perm is not None:
        a = a[:, perm.long().argsort()]
    product = a.float() @ weights.float()
    return (product if bias is None else product + reordered(bias[None], SINGLE)).to(a.dtype)
