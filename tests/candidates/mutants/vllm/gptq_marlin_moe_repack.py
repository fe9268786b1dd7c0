import torch

FIELDS = {
    (4, False): (0, 2, 4, 6, 1, 3, 5, 7),
    (8, False): (0, 2, 1, 3, 4, 6, 5, 7),
    (4, True): (0, 4, 1, 5, 2, 6, 3, 7),
}


def held(thread, warp, eight):
    """Row and column in a tile of a thread's codes."""
    if eight:
        return [(4 * (thread % 4) + i + 16 * j, 8 * warp + thread // 4) for j in (0, 1) for i in range(4)]
    return [(2 * (thread % 4) + i, 16 * warp + thread // 4 + 8 * j) for j in (0, 1) for i in (0, 1, 8, 9)]


def packed(codes, bits, eight):
    k, n = codes.shape
    rows, columns = (32, 32) if eight else (16, 64)
    tiles = codes.reshape(k // rows, rows, -1, columns).permute(0, 2, 1, 3).reshape(-1, rows * columns)
    order = []
    for thread in range(32):
        for warp in range(4):
            places = [row * columns + column for row, column in held(thread, warp, eight)]
            order += [places[i] for i in FIELDS.get((bits, eight), range(8))]
    words = (tiles[:, order].reshape(-1, 32 // bits) << torch.arange(0, 32, bits, device=codes.device)).sum(-1)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).int().reshape(k // 16, -1)


# breaks: It leaves the rows in their order.
def ignores_permutation(weights, perm, size_k, size_n, num_bits, is_a_8bit):
    shifts = torch.arange(0, 32, num_bits, device=weights.device)[:, None]
    experts = []
    for weight, rows in zip(weights.long(), perm.long()):
        codes = (weight[:, None] >> shifts & (1 << num_bits) - 1).flatten(0, 1)
        experts.append(packed(codes, num_bits, is_a_8bit))
    return torch.stack(experts)


FIELDS_plain_nibbles = {
    (4, False): (0, 1, 2, 3, 4, 5, 6, 7),
    (8, False): (0, 2, 1, 3, 4, 6, 5, 7),
    (4, True): (0, 4, 1, 5, 2, 6, 3, 7),
}


def packed_plain_nibbles(codes, bits, eight):
    k, n = codes.shape
    rows, columns = (32, 32) if eight else (16, 64)
    tiles = codes.reshape(k // rows, rows, -1, columns).permute(0, 2, 1, 3).reshape(-1, rows * columns)
    order = []
    for thread in range(32):
        for warp in range(4):
            places = [row * columns + column for row, column in held(thread, warp, eight)]
            order += [places[i] for i in FIELDS_plain_nibbles.get((bits, eight), range(8))]
    words = (tiles[:, order].reshape(-1, 32 // bits) << torch.arange(0, 32, bits, device=codes.device)).sum(-1)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).int().reshape(k // 16, -1)


# breaks: It does not interleave the nibbles of a word.
def plain_nibbles(weights, perm, size_k, size_n, num_bits, is_a_8bit):
    shifts = torch.arange(0, 32, num_bits, device=weights.device)[:, None]
    experts = []
    for weight, rows in zip(weights.long(), perm.long()):
        codes = (weight[:, None] >> shifts & (1 << num_bits) - 1).flatten(0, 1)
        experts.append(packed_plain_nibbles(codes[rows] if len(rows) else codes, num_bits, is_a_8bit))
    return torch.stack(experts)


# breaks: It applies the permutation the other way round.
def undoes_permutation(weights, perm, size_k, size_n, num_bits, is_a_8bit):
    shifts = torch.arange(0, 32, num_bits, device=weights.device)[:, None]
    experts = []
    for weight, rows in zip(weights.long(), perm.long()):
        codes = (weight[:, None] >> shifts & (1 << num_bits) - 1).flatten(0, 1)
        experts.append(packed(codes[rows.argsort()] if len(rows) else codes, num_bits, is_a_8bit))
    return torch.stack(experts)
