import torch


def streams(words, bit, places):
    """words: (k * bit / 32, n). The codes (k, n); places: the first bit of each code of a word."""
    shifts = torch.tensor(places, device=words.device)
    return ((words.long()[:, None] >> shifts[:, None]) & ((1 << bit) - 1)).flatten(0, 1)


# breaks: It ignores the order of the activations.
def ignores_order(a, q_weight, qzeros, scales, g_idx, use_exllama, use_v2_format, bit):
    if bit == 3:
        return a @ torch.zeros(a.shape[1], q_weight.shape[1], dtype=a.dtype, device=a.device)
    plain = list(range(0, 32, bit))
    shuffled = plain if bit == 8 or not use_exllama else [bit * (i // 2) + 16 * (i % 2) for i in range(32 // bit)]
    codes, zeros = streams(q_weight, bit, shuffled), streams(qzeros.T, bit, plain).T + (not use_v2_format)
    group = torch.arange(a.shape[1], device=a.device) // (a.shape[1] // len(scales))
    return a @ ((codes - zeros[group]) * scales[group])


# breaks: It takes the zero points of the first format as they are stored.
def zero_without_one(a, q_weight, qzeros, scales, g_idx, use_exllama, use_v2_format, bit):
    if bit == 3:
        return a @ torch.zeros(a.shape[1], q_weight.shape[1], dtype=a.dtype, device=a.device)
    plain = list(range(0, 32, bit))
    shuffled = plain if bit == 8 or not use_exllama else [bit * (i // 2) + 16 * (i % 2) for i in range(32 // bit)]
    codes, zeros = streams(q_weight, bit, shuffled), streams(qzeros.T, bit, plain).T
    rows = torch.arange(a.shape[1], device=a.device) // (a.shape[1] // len(scales))
    group = rows if use_exllama else g_idx.long()
    a = a[:, g_idx.long()] if use_exllama and g_idx.numel() else a
    return a @ ((codes - zeros[group]) * scales[group])
