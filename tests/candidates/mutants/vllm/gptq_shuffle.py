import torch


# breaks: It permutes rows and leaves the codes in their places.
def keeps_order_of_codes(q_weight, q_perm, bit):
    if not q_perm.numel() or bit == 3:
        return
    per = 32 // bit
    shifts = torch.arange(0, 32, bit, device=q_weight.device)
    codes = ((q_weight.long()[:, None] >> shifts[:, None]) & ((1 << bit) - 1)).flatten(0, 1)[q_perm.long()]
    packed = (codes.reshape(-1, per, codes.shape[1]) << shifts[:, None]).sum(1)
    q_weight.copy_(torch.where(packed >= 1 << 31, packed - (1 << 32), packed))


# breaks: It applies the permutation the other way round.
def undoes_permutation(q_weight, q_perm, bit):
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
