import torch
import triton
import triton.language as tl

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except Exception:
    TensorDescriptor = None


@triton.jit
def _tile_of(pid, M, N, BM: tl.constexpr, BN: tl.constexpr, GM: tl.constexpr):
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    width = GM * num_n
    group = pid // width
    size = tl.minimum(num_m - group * GM, GM)
    rem = pid - group * width
    pm = group * GM + rem % size
    pn = rem // size
    return pm, pn


@triton.jit
def _finish(out, acc, sa, sb, bias, pm, pn, M, N, so, ia, ib, HAS_BIAS: tl.constexpr, BM: tl.constexpr,
            BN: tl.constexpr):
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    mm = m < M
    nm = n < N
    av = tl.load(sa + m * ia, mask=mm, other=0.0)
    bv = tl.load(sb + n * ib, mask=nm, other=0.0)
    r = av[:, None] * (acc.to(tl.float32) * bv[None, :])
    if HAS_BIAS:
        r += tl.load(bias + n, mask=nm, other=0.0).to(tl.float32)[None, :]
    p = out + m.to(tl.int64)[:, None] * so + n[None, :]
    tl.store(p, r.to(out.dtype.element_ty), mask=mm[:, None] & nm[None, :])


@triton.jit
def _tma_kernel(a_desc, b_desc, out, sa, sb, bias, M, N, K, so, ia, ib, HAS_BIAS: tl.constexpr,
                INT8: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                GM: tl.constexpr):
    pm, pn = _tile_of(tl.program_id(0), M, N, BM, BN, GM)
    om = pm * BM
    on = pn * BN
    if INT8:
        acc = tl.zeros((BM, BN), dtype=tl.int32)
    else:
        acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = a_desc.load([om, k])
        b = b_desc.load([on, k])
        if INT8:
            acc = tl.dot(a, b.T, acc, out_dtype=tl.int32)
        else:
            acc = tl.dot(a, b.T, acc)
    _finish(out, acc, sa, sb, bias, pm, pn, M, N, so, ia, ib, HAS_BIAS, BM, BN)


@triton.jit
def _scaled(acc, av, sb, bias, n, N, ib, HAS_BIAS: tl.constexpr, OUT: tl.constexpr):
    nm = n < N
    bv = tl.load(sb + n * ib, mask=nm, other=0.0)
    r = av[:, None] * (acc * bv[None, :])
    if HAS_BIAS:
        r += tl.load(bias + n, mask=nm, other=0.0).to(tl.float32)[None, :]
    return r.to(OUT)


@triton.jit
def _persistent_tma(a_desc, b_desc, c_desc, sa, sb, bias, M, N, K, ia, ib, nprog, HAS_BIAS: tl.constexpr,
                    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr):
    # as _persistent_kernel for float8, the result is written by descriptor too
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for t in tl.range(tl.program_id(0), tiles, nprog, flatten=True):
        pm, pn = _tile_of(t, M, N, BM, BN, GM)
        om = pm * BM
        on = pn * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            a = a_desc.load([om, k])
            b = b_desc.load([on, k])
            acc = tl.dot(a, b.T, acc)
        m = om + tl.arange(0, BM)
        av = tl.load(sa + m * ia, mask=m < M, other=0.0)
        x = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
        x0, x1 = tl.split(x)
        h: tl.constexpr = BN // 2
        c_desc.store([om, on], _scaled(x0, av, sb, bias, on + tl.arange(0, h), N, ib, HAS_BIAS, c_desc.dtype))
        c_desc.store([om, on + h], _scaled(x1, av, sb, bias, on + h + tl.arange(0, h), N, ib, HAS_BIAS, c_desc.dtype))


@triton.jit
def _half(out, acc, av, sb, bias, m, mm, n, N, so, ib, HAS_BIAS: tl.constexpr):
    nm = n < N
    bv = tl.load(sb + n * ib, mask=nm, other=0.0)
    r = av[:, None] * (acc.to(tl.float32) * bv[None, :])
    if HAS_BIAS:
        r += tl.load(bias + n, mask=nm, other=0.0).to(tl.float32)[None, :]
    p = out + m.to(tl.int64)[:, None] * so + n[None, :]
    tl.store(p, r.to(out.dtype.element_ty), mask=mm[:, None] & nm[None, :])


@triton.jit
def _persistent_kernel(a_desc, b_desc, out, sa, sb, bias, M, N, K, so, ia, ib, nprog, HAS_BIAS: tl.constexpr,
                       INT8: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                       GM: tl.constexpr):
    # one program per SM; the loads of the next tile run while this one is written, in two halves
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for t in tl.range(tl.program_id(0), tiles, nprog, flatten=True):
        pm, pn = _tile_of(t, M, N, BM, BN, GM)
        om = pm * BM
        on = pn * BN
        if INT8:
            acc = tl.zeros((BM, BN), dtype=tl.int32)
        else:
            acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            a = a_desc.load([om, k])
            b = b_desc.load([on, k])
            if INT8:
                acc = tl.dot(a, b.T, acc, out_dtype=tl.int32)
            else:
                acc = tl.dot(a, b.T, acc)
        m = om + tl.arange(0, BM)
        mm = m < M
        av = tl.load(sa + m * ia, mask=mm, other=0.0)
        x = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
        x0, x1 = tl.split(x)
        _half(out, x0, av, sb, bias, m, mm, on + tl.arange(0, BN // 2), N, so, ib, HAS_BIAS)
        _half(out, x1, av, sb, bias, m, mm, on + BN // 2 + tl.arange(0, BN // 2), N, so, ib, HAS_BIAS)


@triton.jit
def _gemv_kernel(a, b, out, sa, sb, bias, N, K, bn, ib, HAS_BIAS: tl.constexpr, INT8: tl.constexpr,
                 BN: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    nm = n < N
    kv = tl.arange(0, BK)
    base = b + n.to(tl.int64)[:, None] * bn
    if INT8:
        acc = tl.zeros([BN], tl.int32)
    else:
        acc = tl.zeros([BN], tl.float32)
    for k0 in range(0, K, BK):
        kk = k0 + kv
        km = kk < K
        if INT8:
            x = tl.load(base + kk[None, :], mask=nm[:, None] & km[None, :], other=0).to(tl.int32)
            y = tl.load(a + kk, mask=km, other=0).to(tl.int32)
        else:
            x = tl.load(base + kk[None, :], mask=nm[:, None] & km[None, :], other=0.0).to(tl.float32)
            y = tl.load(a + kk, mask=km, other=0.0).to(tl.float32)
        acc += tl.sum(x * y[None, :], axis=1)
    bv = tl.load(sb + n * ib, mask=nm, other=0.0)
    r = tl.load(sa) * (acc.to(tl.float32) * bv)
    if HAS_BIAS:
        r += tl.load(bias + n, mask=nm, other=0.0).to(tl.float32)
    tl.store(out + n, r.to(out.dtype.element_ty), mask=nm)


@triton.jit
def _ptr_kernel(a, b, out, sa, sb, bias, M, N, K, am, bn, so, ia, ib, HAS_BIAS: tl.constexpr,
                INT8: tl.constexpr, EVEN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr, GM: tl.constexpr):
    pm, pn = _tile_of(tl.program_id(0), M, N, BM, BN, GM)
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    kk = tl.arange(0, BK)
    ap = a + (m.to(tl.int64) * am)[:, None] + kk[None, :]
    bp = b + (n.to(tl.int64) * bn)[None, :] + kk[:, None]
    mm = (m < M)[:, None]
    nm = (n < N)[None, :]
    if INT8:
        acc = tl.zeros((BM, BN), dtype=tl.int32)
    else:
        acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        if INT8:
            if EVEN:
                x = tl.load(ap, mask=mm, other=0)
                y = tl.load(bp, mask=nm, other=0)
            else:
                x = tl.load(ap, mask=mm & (kk < K - k)[None, :], other=0)
                y = tl.load(bp, mask=nm & (kk < K - k)[:, None], other=0)
            acc = tl.dot(x, y, acc, out_dtype=tl.int32)
        else:
            if EVEN:
                x = tl.load(ap, mask=mm, other=0.0)
                y = tl.load(bp, mask=nm, other=0.0)
            else:
                x = tl.load(ap, mask=mm & (kk < K - k)[None, :], other=0.0)
                y = tl.load(bp, mask=nm & (kk < K - k)[:, None], other=0.0)
            acc = tl.dot(x, y, acc)
        ap += BK
        bp += BK
    _finish(out, acc, sa, sb, bias, pm, pn, M, N, so, ia, ib, HAS_BIAS, BM, BN)


def _scaled_mm(out, a, b, a_scales, b_scales, bias, int8):
    M, K = a.shape
    N = b.shape[1]
    if M == 0 or N == 0:
        return None
    ia = 0 if a_scales.numel() == 1 else 1
    ib = 0 if b_scales.numel() == 1 else 1
    am = a.stride(0) if M > 1 else K
    bn = b.stride(1) if N > 1 else K
    so = out.stride(0) if M > 1 else N
    if M == 1:
        BN, BK = 4, 2048
        while BK > 64 and BK // 2 >= K:
            BK //= 2
        _gemv_kernel[(triton.cdiv(N, BN),)](a, b, out, a_scales, b_scales, bias, N, K, bn, ib,
                                            HAS_BIAS=bias is not None, INT8=int8, BN=BN, BK=BK, num_warps=4)
        return None
    ok = (TensorDescriptor is not None and a.is_cuda and M > 128 and K >= 128 and
          a.data_ptr() % 16 == 0 and b.data_ptr() % 16 == 0 and am % 16 == 0 and bn % 16 == 0)
    if ok:
        BK = 128
        tiles = triton.cdiv(M, 128) * triton.cdiv(N, 256)
        if tiles >= 120 and not int8:
            ad = TensorDescriptor(a, [M, K], [am, 1], [128, BK])
            bd = TensorDescriptor(b, [N, K], [bn, 1], [256, BK])
            nprog = min(tiles, 132)
            if so % 8 == 0 and N % 8 == 0 and out.data_ptr() % 16 == 0:
                cd = TensorDescriptor(out, [M, N], [so, 1], [128, 128])
                _persistent_tma[(nprog,)](ad, bd, cd, a_scales, b_scales, bias, M, N, K, ia, ib, nprog,
                                          HAS_BIAS=bias is not None, BM=128, BN=256, BK=BK, GM=8,
                                          num_warps=8, num_stages=4)
                return None
            _persistent_kernel[(nprog,)](ad, bd, out, a_scales, b_scales, bias, M, N, K, so, ia, ib, nprog,
                                         HAS_BIAS=bias is not None, INT8=int8, BM=128, BN=256, BK=BK, GM=8,
                                         num_warps=8, num_stages=4)
            return None
        # int8 products are not left running over the end of a step: a program a tile is faster for them
        BM, BN = (128, 256) if tiles >= 120 else (128, 128)
        grid = (triton.cdiv(M, BM) * triton.cdiv(N, BN),)
        ad = TensorDescriptor(a, [M, K], [am, 1], [BM, BK])
        bd = TensorDescriptor(b, [N, K], [bn, 1], [BN, BK])
        _tma_kernel[grid](ad, bd, out, a_scales, b_scales, bias, M, N, K, so, ia, ib,
                          HAS_BIAS=bias is not None, INT8=int8, BM=BM, BN=BN, BK=BK, GM=8,
                          num_warps=8, num_stages=4)
        return None
    if M <= 64:
        BM = 64
        if int8 and M <= 16:
            BM = 16
        elif int8 and M <= 32:
            BM = 32
        if N >= 64 * 120:
            BN, BK, ns = 64, 128, 6
        else:
            BN, BK, ns = 32, 256, 5
            if M <= 16:
                # about a program per SM: most of its part of b is on the way at once
                ns = 11 if int8 else 8
        nw = 4
    elif M <= 128 and N >= 128 * 90:
        # a tile per SM, as much as possible on the way: the matrix b is read once
        BM, BN, BK, nw, ns = 128, 128, 128, 8, 6
    elif M <= 128:
        BM, BN, BK, nw, ns = 128, 64, 128, 4, 4
    else:
        BM, BN, BK, nw, ns = 128, 128, 64, 8, 3
    if K < BK:
        BK = 64 if K >= 64 else 32
    grid = (triton.cdiv(M, BM) * triton.cdiv(N, BN),)
    _ptr_kernel[grid](a, b, out, a_scales, b_scales, bias, M, N, K, am, bn, so, ia, ib,
                      HAS_BIAS=bias is not None, INT8=int8, EVEN=K % BK == 0, BM=BM, BN=BN, BK=BK, GM=8,
                      num_warps=nw, num_stages=ns)
    return None


def cutlass_scaled_mm_int8(out, a, b, a_scales, b_scales, bias):
    return _scaled_mm(out, a, b, a_scales, b_scales, bias, True)


def cutlass_scaled_mm_fp8(out, a, b, a_scales, b_scales, bias):
    return _scaled_mm(out, a, b, a_scales, b_scales, bias, False)
