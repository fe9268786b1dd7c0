import torch
import triton
import triton.language as tl


@triton.jit
def _order_key(c):
    b = c.to(tl.int32, bitcast=True)
    return b ^ ((b >> 31) & 0x7FFFFFFF)


@triton.jit
def _sigmoid32(x):
    # exp(-x) with a reduced argument, so that large |x| keeps its digits
    y = tl.minimum(tl.maximum(-x, -120.0), 120.0)  # beyond, the sigmoid is 1 or 0
    nn = tl.floor(y * 1.4426950408889634 + 0.5)
    r = y - nn * 0.693359375
    r = r - nn * (-2.12194440054690583e-4)
    e = tl.exp2(r * 1.4426950408889634) * tl.exp2(nn)
    return 1.0 / (1.0 + e)


@triton.jit
def _grouped_topk_kernel(
    s_ptr, b_ptr, w_ptr, i_ptr,
    tokens, E, b_stride, scale,
    G: tl.constexpr, S: tl.constexpr, GP: tl.constexpr, SP: tl.constexpr,
    TG: tl.constexpr, K: tl.constexpr, KP: tl.constexpr,
    SIGMOID: tl.constexpr, RENORM: tl.constexpr, BT: tl.constexpr,
):
    pid = tl.program_id(0)
    rows = pid.to(tl.int64) * BT + tl.arange(0, BT)
    rmask = rows < tokens
    EP: tl.constexpr = GP * SP
    BIG: tl.constexpr = 0x7FFFFFFF
    NONE: tl.constexpr = -2147483648
    idx = tl.arange(0, EP)
    g = idx // SP
    sg = idx % SP
    expert = g * S + sg
    emask = (g < G) & (sg < S)
    m2 = rmask[:, None] & emask[None, :]
    x = tl.load(s_ptr + rows[:, None] * E + expert[None, :], mask=m2, other=0.0).to(tl.float32)
    bias = tl.load(b_ptr + expert.to(tl.int64) * b_stride, mask=emask, other=0.0).to(tl.float32)
    if SIGMOID:
        s = _sigmoid32(x)
    else:
        s = x
    c = s + bias[None, :]
    key = _order_key(c)
    key = tl.where(emask[None, :], key, NONE)

    if TG < G:
        c3 = tl.reshape(tl.where(emask[None, :], c, float("-inf")), [BT, GP, SP])
        i3 = tl.arange(0, SP)[None, None, :]
        m1 = tl.max(c3, axis=2)
        p1 = tl.min(tl.where(c3 == m1[:, :, None], i3, BIG), axis=2)
        sec = tl.max(tl.where(i3 == p1[:, :, None], float("-inf"), c3), axis=2)
        gi = tl.arange(0, GP)[None, :]
        gkey = _order_key(m1 + sec)
        gkey = tl.where(gi < G, gkey, NONE)
        keep = tl.zeros([BT, GP], dtype=tl.int32)
        for _ in range(TG):
            gm = tl.max(gkey, axis=1)
            gp = tl.min(tl.where(gkey == gm[:, None], gi, BIG), axis=1)
            hit = gi == gp[:, None]
            keep = tl.where(hit, 1, keep)
            gkey = tl.where(hit, NONE, gkey)
        key3 = tl.reshape(key, [BT, GP, SP])
        key3 = tl.where(keep[:, :, None] != 0, key3, NONE)
        key = tl.reshape(key3, [BT, EP])

    kidx = tl.arange(0, KP)
    chosen = tl.zeros([BT, KP], dtype=tl.int32)
    for i in range(K):
        m = tl.max(key, axis=1)
        p = tl.min(tl.where(key == m[:, None], idx[None, :], BIG), axis=1)
        key = tl.where(idx[None, :] == p[:, None], NONE, key)
        chosen = tl.where(kidx[None, :] == i, p[:, None], chosen)

    chosen = (chosen // SP) * S + chosen % SP
    km = rmask[:, None] & (kidx < K)[None, :]
    xs = tl.load(s_ptr + rows[:, None] * E + chosen, mask=km, other=0.0).to(tl.float64)
    if SIGMOID:
        ws = 1.0 / (1.0 + tl.exp(-xs))
    else:
        ws = xs
    if RENORM:
        tot = tl.sum(tl.where(km, ws, 0.0), axis=1) + 1e-20
        wgt = ws * scale / tot[:, None]
    else:
        wgt = ws * scale
    o = rows[:, None] * K + kidx[None, :]
    tl.store(w_ptr + o, wgt.to(tl.float32), mask=km)
    tl.store(i_ptr + o, chosen, mask=km)


def grouped_topk(scores, n_group, topk_group, topk, renormalize, routed_scaling_factor, bias, scoring_func):
    tokens, E = scores.shape
    n_group = int(n_group)
    topk_group = int(topk_group)
    topk = int(topk)
    w = torch.empty((tokens, topk), dtype=torch.float32, device=scores.device)
    idx = torch.empty((tokens, topk), dtype=torch.int32, device=scores.device)
    if tokens == 0 or topk == 0:
        return w, idx
    S = E // n_group
    GP = triton.next_power_of_2(n_group)
    SP = triton.next_power_of_2(S)
    if topk_group >= n_group:
        # no choice of groups: take the experts as one group
        n_group, topk_group, S = 1, 1, E
        GP, SP = 1, triton.next_power_of_2(E)
    EP = GP * SP
    BT = max(1, min(8, 2048 // EP))
    if tokens < 1024:
        BT = min(BT, 4)
    _grouped_topk_kernel[(triton.cdiv(tokens, BT),)](
        scores, bias, w, idx,
        tokens, E, bias.stride(0), float(routed_scaling_factor),
        G=n_group, S=S, GP=GP, SP=SP, TG=topk_group,
        K=topk, KP=triton.next_power_of_2(topk),
        SIGMOID=(int(scoring_func) == 1), RENORM=bool(renormalize), BT=BT,
        num_warps=4)
    return w, idx
