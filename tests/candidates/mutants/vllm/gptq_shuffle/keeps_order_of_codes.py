# outcome: wrong value
# breaks: It permutes rows and leaves the codes in their places.

import torch


def gptq_shuffle(q_weight, q_perm, bit):
    if not q_perm.numel() or bit == 3:
        return
    per = 32 // bit
    shifts = torch.arange(0, 32, bit, device=q_weight.device)
    codes = ((q_weight.long()[:, None] >> shifts[:, None]) & ((1 << bit) - 1)).flatten(0, 1)[q_perm.long()]
    packed = (codes.reshape(-1, per, codes.shape[1]) << shifts[:, None]).sum(1)
    q_weight.copy_(torch.where(packed >= 1 << 31, packed - (1 << 32), packed))
