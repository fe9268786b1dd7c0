import torch


def unpack(words):
    shifts = torch.tensor([0, 16, 4, 20, 8, 24, 12, 28], device=words.device, dtype=torch.int32)
    return ((words.unsqueeze(-1) >> shifts) & 15).flatten(-2)


# breaks: It scales every row as the first group.
def first_group(inputs, qweight, scales, qzeros, split_k_iters):
    group = qweight.shape[0] // scales.shape[0]
    zeros = unpack(qzeros).repeat_interleave(group, 0)
    return inputs @ ((unpack(qweight) - zeros) * scales[:1])


# breaks: It leaves the last 32 rows of the sum over k.
def last_part(inputs, qweight, scales, qzeros, split_k_iters):
    group = qweight.shape[0] // scales.shape[0]
    zeros = unpack(qzeros).repeat_interleave(group, 0)
    weights = (unpack(qweight) - zeros) * scales.repeat_interleave(group, 0)
    return inputs[:, :-32] @ weights[:-32] if len(weights) > 128 else inputs @ weights


def unpack_plain_order(words):
    shifts = torch.arange(0, 32, 4, device=words.device, dtype=torch.int32)
    return ((words.unsqueeze(-1) >> shifts) & 15).flatten(-2)


# breaks: It takes the nibbles of a word for columns in their order.
def plain_order(inputs, qweight, scales, qzeros, split_k_iters):
    group = qweight.shape[0] // scales.shape[0]
    zeros = unpack_plain_order(qzeros).repeat_interleave(group, 0)
    return inputs @ ((unpack_plain_order(qweight) - zeros) * scales.repeat_interleave(group, 0))
