import torch
import triton
import triton.language as tl


@triton.jit
def _epilogue(acc, out, a_s, b_s, adj, azp, bias, offs_m, offs_n, M, N, som, sas, sbs, saz,
              HAS_AZP: tl.constexpr, HAS_BIAS: tl.constexpr):
    mm = offs_m < M
    nm = offs_n < N
    sa = tl.load(a_s + offs_m * sas, mask=mm, other=0.0)
    sb = tl.load(b_s + offs_n * sbs, mask=nm, other=0.0)
    ad = tl.load(adj + offs_n, mask=nm, other=0)
    if HAS_AZP:
        az = tl.load(azp + offs_m * saz, mask=mm, other=0)
        acc = acc - az[:, None] * ad[None, :]
    else:
        acc = acc - ad[None, :]
    r = acc.to(tl.float32) * (sa[:, None] * sb[None, :])
    if HAS_BIAS:
        bv = tl.load(bias + offs_n, mask=nm, other=0.0).to(tl.float32)
        r = r + bv[None, :]
    tl.store(out + offs_m.to(tl.int64)[:, None] * som + offs_n[None, :], r.to(out.dtype.element_ty),
             mask=mm[:, None] & nm[None, :])


@triton.jit
def _gemv_kernel(a, b, out, a_s, b_s, adj, azp, bias, N, K, sbn, sbs,
                 HAS_AZP: tl.constexpr, HAS_BIAS: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    nm = n < N
    kv = tl.arange(0, BK)
    base = b + n.to(tl.int64)[:, None] * sbn
    acc = tl.zeros([BN], tl.int32)
    for k0 in range(0, K, BK):
        kk = k0 + kv
        km = kk < K
        bt = tl.load(base + kk[None, :], mask=nm[:, None] & km[None, :], other=0).to(tl.int32)
        at = tl.load(a + kk, mask=km, other=0).to(tl.int32)
        acc += tl.sum(bt * at[None, :], axis=1)
    ad = tl.load(adj + n, mask=nm, other=0)
    if HAS_AZP:
        acc = acc - ad * tl.load(azp)
    else:
        acc = acc - ad
    sb = tl.load(b_s + n * sbs, mask=nm, other=0.0)
    r = acc.to(tl.float32) * (tl.load(a_s) * sb)
    if HAS_BIAS:
        r = r + tl.load(bias + n, mask=nm, other=0.0).to(tl.float32)
    tl.store(out + n, r.to(out.dtype.element_ty), mask=nm)


@triton.jit
def _mm_kernel(a, b, out, a_s, b_s, adj, azp, bias, M, N, K, sam, sbn, som, sas, sbs, saz,
               HAS_AZP: tl.constexpr, HAS_BIAS: tl.constexpr,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    width = GM * num_n
    group = pid // width
    first = group * GM
    gsz = tl.minimum(num_m - first, GM)
    pid_m = first + (pid % width) % gsz
    pid_n = (pid % width) // gsz
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    kv = tl.arange(0, BK)
    a_base = a + offs_m.to(tl.int64)[:, None] * sam
    b_base = b + offs_n.to(tl.int64)[None, :] * sbn
    mm = offs_m < M
    nm = offs_n < N
    acc = tl.zeros([BM, BN], tl.int32)
    for k0 in range(0, K, BK):
        kk = k0 + kv
        km = kk < K
        at = tl.load(a_base + kk[None, :], mask=mm[:, None] & km[None, :], other=0)
        bt = tl.load(b_base + kk[:, None], mask=km[:, None] & nm[None, :], other=0)
        acc = tl.dot(at, bt, acc, out_dtype=tl.int32)
    _epilogue(acc, out, a_s, b_s, adj, azp, bias, offs_m, offs_n, M, N, som, sas, sbs, saz,
              HAS_AZP, HAS_BIAS)


@triton.jit
def _tma_kernel(a_desc, b_desc, out, a_s, b_s, adj, azp, bias, M, N, K, som, sas, sbs, saz,
                HAS_AZP: tl.constexpr, HAS_BIAS: tl.constexpr,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    width = GM * num_n
    group = pid // width
    first = group * GM
    gsz = tl.minimum(num_m - first, GM)
    pid_m = first + (pid % width) % gsz
    pid_n = (pid % width) // gsz
    m0 = pid_m * BM
    n0 = pid_n * BN
    acc = tl.zeros([BM, BN], tl.int32)
    for k0 in range(0, K, BK):
        at = a_desc.load([m0, k0])
        bt = b_desc.load([n0, k0])
        acc = tl.dot(at, bt.T, acc, out_dtype=tl.int32)
    offs_m = m0 + tl.arange(0, BM)
    offs_n = n0 + tl.arange(0, BN)
    _epilogue(acc, out, a_s, b_s, adj, azp, bias, offs_m, offs_n, M, N, som, sas, sbs, saz,
              HAS_AZP, HAS_BIAS)


def cutlass_scaled_mm_azp(out, a, b, a_scales, b_scales, azp_adj, azp, bias):
    M, K = a.shape
    N = b.shape[1]
    if M == 0 or N == 0:
        return None
    if K > 0 and a.stride(1) != 1:
        a = a.contiguous()
    if K > 1 and b.stride(0) != 1:
        b = b.t().contiguous().t()
    sam = a.stride(0)
    sbn = b.stride(1)
    som = out.stride(0)
    has_azp = azp is not None
    has_bias = bias is not None
    sas = 0 if a_scales.numel() == 1 else a_scales.stride(0)
    sbs = 0 if b_scales.numel() == 1 else b_scales.stride(1)
    saz = azp.stride(0) if has_azp else 0
    az = azp if has_azp else azp_adj
    bi = bias if has_bias else out
    if M == 1:
        BN, BK = 4, 2048
        while BK > 64 and BK // 2 >= K:
            BK //= 2
        _gemv_kernel[(triton.cdiv(N, BN),)](a, b, out, a_scales, b_scales, azp_adj, az, bi, N, K, sbn, sbs,
                                            HAS_AZP=has_azp, HAS_BIAS=has_bias, BN=BN, BK=BK, num_warps=4)
        return None
    if (M > 256 and N >= 256 and K >= 128 and a.is_cuda and a.data_ptr() % 16 == 0 and b.data_ptr() % 16 == 0
            and sam % 16 == 0 and sbn % 16 == 0):
        try:
            from triton.tools.tensor_descriptor import TensorDescriptor
            BM, BN, BK = 128, 256, 128
            ad = TensorDescriptor(a, [M, K], [sam, 1], [BM, BK])
            bd = TensorDescriptor(b.t(), [N, K], [sbn, 1], [BN, BK])
            _tma_kernel[(triton.cdiv(M, BM) * triton.cdiv(N, BN),)](
                ad, bd, out, a_scales, b_scales, azp_adj, az, bi, M, N, K, som, sas, sbs, saz,
                HAS_AZP=has_azp, HAS_BIAS=has_bias, BM=BM, BN=BN, BK=BK, GM=8, num_warps=8, num_stages=4)
            return None
        except Exception:
            pass
    if M <= 16:
        BM, BN, BK, nw, st = 16, 32, 256, 4, 4
    elif M <= 32:
        BM, BN, BK, nw, st = 32, 64, 128, 4, 4
    elif M <= 64:
        BM, BN, BK, nw, st = 64, 64, 128, 4, 4
    elif M <= 128 and N >= 128 * 90:
        # a tile per SM, as much as possible on the way: the matrix b is read once
        BM, BN, BK, nw, st = 128, 128, 128, 8, 6
    elif M <= 128:
        BM, BN, BK, nw, st = 128, 64, 128, 4, 4
    else:
        BM, BN, BK, nw, st = 128, 128, 128, 8, 3
    _mm_kernel[(triton.cdiv(M, BM) * triton.cdiv(N, BN),)](
        a, b, out, a_scales, b_scales, azp_adj, az, bi, M, N, K, sam, sbn, som, sas, sbs, saz,
        HAS_AZP=has_azp, HAS_BIAS=has_bias, BM=BM, BN=BN, BK=BK, GM=8, num_warps=nw, num_stages=st)
    return None

