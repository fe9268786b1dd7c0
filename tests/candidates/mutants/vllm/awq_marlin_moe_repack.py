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


# breaks: It interleaves the columns of 4-bit words once more in place of undoing it.
def interleaves_again(weights, perm, size_k, size_n, num_bits, is_a_8bit):
    per = 32 // num_bits
    places = [0, 2, 4, 6, 1, 3, 5, 7] if num_bits == 4 else [0, 2, 1, 3]
    shifts = num_bits * torch.tensor(places, device=weights.device)
    codes = (weights.long()[..., None] >> shifts & (1 << num_bits) - 1).flatten(2)
    return torch.stack([packed(each, num_bits, is_a_8bit) for each in codes])


# breaks: It takes the bytes of an 8-bit word for columns in their order.
def plain_bytes(weights, perm, size_k, size_n, num_bits, is_a_8bit):
    per = 32 // num_bits
    places = [0, 4, 1, 5, 2, 6, 3, 7] if num_bits == 4 else [0, 1, 2, 3]
    shifts = num_bits * torch.tensor(places, device=weights.device)
    codes = (weights.long()[..., None] >> shifts & (1 << num_bits) - 1).flatten(2)
    return torch.stack([packed(each, num_bits, is_a_8bit) for each in codes])


# breaks: It takes the fields of a word for columns in their order.
def plain_columns(weights, perm, size_k, size_n, num_bits, is_a_8bit):
    per = 32 // num_bits
    places = list(range(per))
    shifts = num_bits * torch.tensor(places, device=weights.device)
    codes = (weights.long()[..., None] >> shifts & (1 << num_bits) - 1).flatten(2)
    return torch.stack([packed(each, num_bits, is_a_8bit) for each in codes])
