# outcome: wrong value
# breaks: It takes the nibbles of a word for columns in their order.

import torch


def unpack(words):
    shifts = torch.arange(0, 32, 4, device=words.device, dtype=torch.int32)
    return ((words.unsqueeze(-1) >> shifts) & 15).flatten(-2)


def awq_gemm(inputs, qweight, scales, qzeros, split_k_iters):
    group = qweight.shape[0] // scales.shape[0]
    zeros = unpack(qzeros).repeat_interleave(group, 0)
    return inputs @ ((unpack(qweight) - zeros) * scales.repeat_interleave(group, 0))
