import torch


def fields(words, bits):
    shifts = torch.arange(0, 32, bits, device=words.device)
    return (words.long()[..., None] >> shifts & (1 << bits) - 1).flatten(-2)


def unpacked(packed, bits):
    """(rows, n) of words in tiles of 16 rows and 64 columns."""
    order = (0, 2, 4, 6, 1, 3, 5, 7) if bits == 4 else (0, 2, 1, 3, 4, 6, 5, 7)
    places = []
    for thread in range(32):
        for warp in range(4):
            column = 16 * (thread // 8) + 8 * (thread // 4 % 2) + warp
            held = [(2 * (thread % 4) + i) * 64 + column + 4 * j for j in (0, 1) for i in (0, 1, 8, 9)]
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


def swap(place, column):
    step = ((place % 2 == 0) & (column % 2 == 1)).long() - ((place % 2 == 1) & (column % 2 == 0)).long()
    return place + step, column - step


def kept(meta, n):
    """(k / 4, 2, n): the rows of every four that are stored."""
    h = torch.arange(n, device=meta.device) % 64
    place = torch.arange(n, device=meta.device) - h + 2 * (h % 2) + h % 8 // 4 + 32 * (h % 4 // 2) + 4 * (h // 8)
    column = torch.arange(2 * len(meta), device=meta.device)[:, None]
    place, column = place.expand(len(column), n), column.expand(len(column), n)
    place, column = swap(place, column)
    words = meta.flatten()[2 * n * (column // 2) + 2 * place + column % 2].long()[:, None]
    return (words >> torch.arange(0, 16, 2, device=meta.device)[:, None] & 3).reshape(-1, 2, n)


# breaks: It takes the first two rows of every four for those that are stored.
def dense_rows(a, packed, meta, scales, workspace, type_id, m, n, k):
    bits = 2 * packed.shape[1] // n
    codes = (unpacked(packed, bits) - (1 << bits - 1)).float().reshape(-1, 2, n)
    weights = (
        torch.zeros(k // 4, 4, n, device=a.device)
        .scatter_(1, torch.tensor([0, 1], device=a.device)[:, None].expand(k // 4, 2, n), codes)
        .reshape(k, n)
    )
    plain = reordered(scales, [0, 4, 1, 5, 2, 6, 3, 7]) if len(scales) > 1 else scales
    return (a.float() @ (weights * plain.repeat_interleave(k // len(scales), 0).float())).to(a.dtype)


def kept_plain_metadata(meta, n):
    """(k / 4, 2, n): the rows of every four that are stored."""
    h = torch.arange(n, device=meta.device) % 64
    place = torch.arange(n, device=meta.device) - h + 2 * (h % 2) + h % 8 // 4 + 32 * (h % 4 // 2) + 4 * (h // 8)
    column = torch.arange(2 * len(meta), device=meta.device)[:, None]
    place, column = place.expand(len(column), n), column.expand(len(column), n)
    pass
    words = meta.flatten()[2 * n * (column // 2) + 2 * place + column % 2].long()[:, None]
    return (words >> torch.arange(0, 16, 2, device=meta.device)[:, None] & 3).reshape(-1, 2, n)


# breaks: It does not swap the metadata of odd places and columns.
def plain_metadata(a, packed, meta, scales, workspace, type_id, m, n, k):
    bits = 2 * packed.shape[1] // n
    codes = (unpacked(packed, bits) - (1 << bits - 1)).float().reshape(-1, 2, n)
    weights = torch.zeros(k // 4, 4, n, device=a.device).scatter_(1, kept_plain_metadata(meta, n), codes).reshape(k, n)
    plain = reordered(scales, [0, 4, 1, 5, 2, 6, 3, 7]) if len(scales) > 1 else scales
    return (a.float() @ (weights * plain.repeat_interleave(k // len(scales), 0).float())).to(a.dtype)


# breaks: It takes the scales of several groups in the order of the columns.
def plain_scales(a, packed, meta, scales, workspace, type_id, m, n, k):
    bits = 2 * packed.shape[1] // n
    codes = (unpacked(packed, bits) - (1 << bits - 1)).float().reshape(-1, 2, n)
    weights = torch.zeros(k // 4, 4, n, device=a.device).scatter_(1, kept(meta, n), codes).reshape(k, n)
    plain = reordered(scales, list(range(8))) if len(scales) > 1 else scales
    return (a.float() @ (weights * plain.repeat_interleave(k // len(scales), 0).float())).to(a.dtype)
