# outcome: wrong value
# breaks: It gives rows their groups in turn.

import torch


def changed(qweight, qzeros):
    shifts = torch.arange(0, 32, 4, device=qweight.device)
    codes = qweight.long()[..., None] >> shifts & 15
    zeros = torch.full_like(codes, 8)
    if qzeros is not None:
        zeros = (qzeros.long()[..., None] >> shifts & 15).repeat(len(qweight) // len(qzeros), 1, 1)
    result = (torch.where(codes >= zeros, codes - zeros, 15 - codes) << shifts).sum(-1)
    return torch.where(result >= 1 << 31, result - (1 << 32), result).int()


def marlin_int4_fp8_preprocess(qweight, qzeros, inplace):
    return changed(qweight, qzeros)


def marlin_int4_fp8_preprocess_inplace(qweight, qzeros, inplace):
    return qweight.copy_(changed(qweight, qzeros))
