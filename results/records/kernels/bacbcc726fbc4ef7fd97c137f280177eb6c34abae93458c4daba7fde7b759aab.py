import torch
import triton
import triton.language as tl


@triton.jit
def _gemm_kernel(a, q, s, z, out, M, N, NW, K, G, kper,
                 BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                 SPLIT: tl.constexpr, HW: tl.constexpr):
    pid = tl.program_id(0)
    pid_k = tl.program_id(1)
    num_m = tl.cdiv(M, BM)
    pid_m = pid % num_m
    pid_n = pid // num_m
    W8: tl.constexpr = BN // 8
    offs_m = pid_m * BM + tl.arange(0, BM)
    mm = offs_m < M
    offs_n = pid_n * BN + tl.arange(0, BN)
    nm = offs_n < N
    w = pid_n * W8 + tl.arange(0, W8)
    wm = w < NW
    kv = tl.arange(0, BK)
    a_base = a + offs_m.to(tl.int64)[:, None] * K
    ks = pid_k * kper
    ke = tl.minimum(ks + kper, K)
    acc = tl.zeros([BM, BN], tl.float32)
    for k0 in range(ks, ke, BK):
        kk = k0 + kv
        at = tl.load(a_base + kk[None, :], mask=mm[:, None], other=0.0)
        qw = tl.load(q + kk.to(tl.int64)[:, None] * NW + w[None, :], mask=wm[None, :], other=0)
        g = k0 // G
        zw = tl.load(z + g * NW + w, mask=wm, other=0)
        sv = tl.load(s + g * N + offs_n, mask=nm, other=0.0)
        # column 8 j + c: nibble 4 * (c % 2) + c // 2
        x = tl.join(qw, qw >> 8)
        x = tl.join(x, x >> 4)
        x = tl.join(x, x >> 16)
        x = tl.reshape(x, (BK, BN))
        y = tl.join(zw, zw >> 8)
        y = tl.join(y, y >> 4)
        y = tl.join(y, y >> 16)
        y = tl.reshape(y, (BN,))
        xf = ((x & 0xF) | 0x6400).to(tl.int16).to(tl.float16, bitcast=True)
        yf = ((y & 0xF) | 0x6400).to(tl.int16).to(tl.float16, bitcast=True)
        wt = (xf - yf[None, :]) * sv[None, :]
        if HW:
            acc = tl.dot(at, wt, acc)
        else:
            acc += tl.dot(at.to(tl.float32), wt.to(tl.float32), input_precision="ieee")
    msk = mm[:, None] & nm[None, :]
    if SPLIT:
        row = (pid_k * M + offs_m).to(tl.int64)
        tl.store(out + row[:, None] * N + offs_n[None, :], acc, mask=msk)
    else:
        tl.store(out + offs_m.to(tl.int64)[:, None] * N + offs_n[None, :],
                 acc.to(out.dtype.element_ty), mask=msk)


@triton.jit
def _reduce_kernel(part, out, S, L, SP: tl.constexpr, BL: tl.constexpr):
    o = tl.program_id(0).to(tl.int64) * BL + tl.arange(0, BL)
    sidx = tl.arange(0, SP)
    L64 = sidx.to(tl.int64) * L
    v = tl.load(part + L64[:, None] + o[None, :], mask=(sidx < S)[:, None] & (o < L)[None, :], other=0.0)
    tl.store(out + o, tl.sum(v, axis=0).to(out.dtype.element_ty), mask=o < L)


def awq_gemm(_in_feats, _kernel, _scaling_factors, _zeros, split_k_iters):
    m, k = _in_feats.shape
    nw_ = _kernel.shape[1]
    n = nw_ * 8
    dev = _in_feats.device
    out = torch.empty((m, n), dtype=_in_feats.dtype, device=dev)
    if m == 0 or n == 0:
        return out
    if k == 0:
        out.fill_(0)
        return out
    a = _in_feats if _in_feats.is_contiguous() else _in_feats.contiguous()
    q = _kernel if _kernel.is_contiguous() else _kernel.contiguous()
    s = _scaling_factors if _scaling_factors.is_contiguous() else _scaling_factors.contiguous()
    z = _zeros if _zeros.is_contiguous() else _zeros.contiguous()
    G = k // s.shape[0]
    BK = 64 if G % 64 == 0 else 32
    # few rows: the loop over k is bound by latency, so that several small programs share an SM
    if m <= 16:
        BM, BN, nw, st = 16, 64, 4, 4
        target = 704
    elif m <= 32:
        BM, BN, nw, st = 32, 64, 4, 4
        target = 528
    elif m <= 64:
        BM, BN, nw, st = 64, 64, 4, 4
        target = 396
    else:
        BM, BN, nw, st = 128, 128, 8, 3
        target = 132
    tiles = triton.cdiv(m, BM) * triton.cdiv(n, BN)
    S = max(1, min(16, target // tiles, k // (4 * BK)))
    kper = triton.cdiv(triton.cdiv(k, S), BK) * BK
    S = triton.cdiv(k, kper)
    dst = torch.empty((S, m, n), dtype=torch.float32, device=dev) if S > 1 else out
    _gemm_kernel[(tiles, S)](a, q, s, z, dst, m, n, nw_, k, G, kper,
                             BM=BM, BN=BN, BK=BK, SPLIT=S > 1, HW=a.is_cuda,
                             num_warps=nw, num_stages=st)
    if S > 1:
        L = m * n
        BL = 256 if L >= 65536 else 64
        _reduce_kernel[(triton.cdiv(L, BL),)](dst, out, S, L, SP=triton.next_power_of_2(S), BL=BL,
                                              num_warps=4 if BL == 256 else 2)
    return out
