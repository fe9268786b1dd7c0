import torch


def marlin_int4_fp8_preprocess(qweight, qzeros, inplace):
    return kernel(qweight, qzeros)


def marlin_int4_fp8_preprocess_inplace(qweight, qzeros, inplace):
    return qweight.copy_(kernel(qweight, qzeros))


# breaks: It gives rows their groups in turn.
def groups_in_turn(qweight, qzeros):
    shifts = torch.arange(0, 32, 4, device=qweight.device)
    codes = qweight.long()[..., None] >> shifts & 15
    zeros = torch.full_like(codes, 8)
    if qzeros is not None:
        zeros = (qzeros.long()[..., None] >> shifts & 15).repeat(len(qweight) // len(qzeros), 1, 1)
    result = (torch.where(codes >= zeros, codes - zeros, 15 - codes) << shifts).sum(-1)
    return torch.where(result >= 1 << 31, result - (1 << 32), result).int()


# breaks: It takes every zero point for 8.
def ignores_zero_points(qweight, qzeros):
    shifts = torch.arange(0, 32, 4, device=qweight.device)
    codes = qweight.long()[..., None] >> shifts & 15
    zeros = torch.full_like(codes, 8)
    if qzeros is not None:
        zeros = zeros
    result = (torch.where(codes >= zeros, codes - zeros, 15 - codes) << shifts).sum(-1)
    return torch.where(result >= 1 << 31, result - (1 << 32), result).int()


# breaks: It takes the difference modulo 16 below zero.
def wraps(qweight, qzeros):
    shifts = torch.arange(0, 32, 4, device=qweight.device)
    codes = qweight.long()[..., None] >> shifts & 15
    zeros = torch.full_like(codes, 8)
    if qzeros is not None:
        zeros = (qzeros.long()[..., None] >> shifts & 15).repeat_interleave(len(qweight) // len(qzeros), 0)
    result = (torch.where(codes >= zeros, codes - zeros, codes - zeros + 16) << shifts).sum(-1)
    return torch.where(result >= 1 << 31, result - (1 << 32), result).int()
