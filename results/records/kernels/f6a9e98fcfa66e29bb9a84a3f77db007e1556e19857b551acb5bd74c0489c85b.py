import torch
import triton
import triton.language as tl


# One warp per program: every load of the program comes before its stores.
@triton.jit(do_not_specialize=["HQ", "HT", "nh"])
def _norm_rope_kernel(qkv, qw, kw, cs, pos, st, HQ, HT, nh, scs, eps,
                      D: tl.constexpr, RD: tl.constexpr, NEOX: tl.constexpr, HB: tl.constexpr):
    # one dimension of the grid: the others end at 65535
    pid = tl.program_id(0)
    t = (pid // nh).to(tl.int64)
    h = (pid % nh).to(tl.int64) * HB + tl.arange(0, HB)
    hm = h < HT
    isq = (h < HQ)[:, None]
    p = tl.load(pos + t)
    base = qkv + t * st + (h * D)[:, None]
    RH: tl.constexpr = RD // 2
    j = tl.arange(0, RH)
    cos = tl.load(cs + p * scs + j).to(tl.float32)[None, :]
    sin = tl.load(cs + p * scs + RH + j).to(tl.float32)[None, :]
    hm2 = hm[:, None]
    if NEOX:
        x1 = tl.load(base + j[None, :], mask=hm2, other=0.0).to(tl.float32)
        x2 = tl.load(base + (RH + j)[None, :], mask=hm2, other=0.0).to(tl.float32)
        w1 = tl.where(isq, tl.load(qw + j).to(tl.float32)[None, :], tl.load(kw + j).to(tl.float32)[None, :])
        w2 = tl.where(isq, tl.load(qw + RH + j).to(tl.float32)[None, :],
                      tl.load(kw + RH + j).to(tl.float32)[None, :])
    else:
        f = tl.arange(0, RD)
        x = tl.load(base + f[None, :], mask=hm2, other=0.0).to(tl.float32)
        x1, x2 = tl.split(tl.reshape(x, (HB, RH, 2)))
        w1 = tl.where(isq, tl.load(qw + 2 * j).to(tl.float32)[None, :], tl.load(kw + 2 * j).to(tl.float32)[None, :])
        w2 = tl.where(isq, tl.load(qw + 2 * j + 1).to(tl.float32)[None, :],
                      tl.load(kw + 2 * j + 1).to(tl.float32)[None, :])
    ss = tl.sum(x1 * x1 + x2 * x2, axis=1)
    if RD < D:
        r = tl.arange(0, D)
        rm = (r >= RD)[None, :]
        x3 = tl.load(base + r[None, :], mask=hm2 & rm, other=0.0).to(tl.float32)
        w3 = tl.where(isq, tl.load(qw + r).to(tl.float32)[None, :], tl.load(kw + r).to(tl.float32)[None, :])
        ss += tl.sum(x3 * x3, axis=1)
    inv = tl.rsqrt(ss * (1.0 / D) + eps)[:, None]
    y1 = x1 * inv * w1
    y2 = x2 * inv * w2
    o1 = y1 * cos - y2 * sin
    o2 = y2 * cos + y1 * sin
    ty = qkv.dtype.element_ty
    if NEOX:
        tl.store(base + j[None, :], o1.to(ty), mask=hm2)
        tl.store(base + (RH + j)[None, :], o2.to(ty), mask=hm2)
    else:
        o = tl.reshape(tl.join(o1, o2), (HB, RD))
        tl.store(base + f[None, :], o.to(ty), mask=hm2)
    if RD < D:
        y3 = x3 * inv * w3
        tl.store(base + r[None, :], y3.to(ty), mask=hm2 & rm)


def fused_qk_norm_rope(qkv, num_heads_q, num_heads_k, num_heads_v, head_dim, eps, q_weight, k_weight,
                       cos_sin_cache, is_neox, position_ids):
    T = qkv.shape[0]
    HT = num_heads_q + num_heads_k
    if T == 0 or HT == 0:
        return None
    RD = cos_sin_cache.shape[1]
    HB = max(1, 1024 // head_dim)
    HB = min(HB, triton.next_power_of_2(HT))
    nh = triton.cdiv(HT, HB)
    _norm_rope_kernel[(T * nh,)](
        qkv, q_weight, k_weight, cos_sin_cache, position_ids, qkv.stride(0), num_heads_q, HT, nh,
        cos_sin_cache.stride(0), float(eps),
        D=head_dim, RD=RD, NEOX=bool(is_neox), HB=HB, num_warps=1)
    return None

