# outcome: wrong value
# breaks: It applies the permutation the other way round.

import torch


def gptq_shuffle(q_weight, q_perm, bit):
    if bit in (3, 8):
        return
    per = 32 // bit
    shifts = torch.arange(0, 32, bit, device=q_weight.device)
    codes = ((q_weight.long()[:, None] >> shifts[:, None]) & ((1 << bit) - 1)).flatten(0, 1)
    if q_perm.numel():
        codes = codes[q_perm.long().argsort()]
    places = torch.tensor([bit * (i // 2) + 16 * (i % 2) for i in range(per)], device=q_weight.device)
    packed = (codes.reshape(-1, per, codes.shape[1]) << places[:, None]).sum(1)
    q_weight.copy_(torch.where(packed >= 1 << 31, packed - (1 << 32), packed))
