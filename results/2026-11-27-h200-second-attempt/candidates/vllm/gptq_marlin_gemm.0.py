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
def _bias_place(n):
    # where the bias (and a scale of the only group) of column n lies
    c = n % 32
    return (n - c) + 8 * ((c % 8) // 2) + 2 * (c // 8) + c % 2


@triton.jit
def _write(C, acc, bias, pm, pn, M, N, HAS_BIAS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    mm = m < M
    nm = n < N
    r = acc
    if HAS_BIAS:
        r += tl.load(bias + _bias_place(n), mask=nm, other=0.0).to(tl.float32)[None, :]
    tl.store(C + (m.to(tl.int64) * N)[:, None] + n[None, :], r.to(C.dtype.element_ty),
             mask=mm[:, None] & nm[None, :])


@triton.jit
def _gemm_tma(ad, bd, C, bias, M, N, K, HAS_BIAS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              BK: tl.constexpr, GM: tl.constexpr):
    pm, pn = _tile_of(tl.program_id(0), M, N, BM, BN, GM)
    om = pm * BM
    on = pn * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = ad.load([om, k])
        b = bd.load([k, on])
        acc = tl.dot(a, b, acc)
    _write(C, acc, bias, pm, pn, M, N, HAS_BIAS, BM, BN)


@triton.jit
def _gemm_ptr(A, B, C, bias, M, N, K, HAS_BIAS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              BK: tl.constexpr, GM: tl.constexpr):
    pm, pn = _tile_of(tl.program_id(0), M, N, BM, BN, GM)
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    kk = tl.arange(0, BK)
    ap = A + (m.to(tl.int64) * K)[:, None] + kk[None, :]
    bp = B + (kk.to(tl.int64) * N)[:, None] + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        km = kk < K - k
        a = tl.load(ap, mask=(m < M)[:, None] & km[None, :], other=0.0)
        b = tl.load(bp, mask=km[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        ap += BK
        bp += BK * N
    _write(C, acc, bias, pm, pn, M, N, HAS_BIAS, BM, BN)


def _gemm(A, B, C, bias, M, N, K):
    # C = A B, everything row-major, A and B of 16 bits
    hb = bias is not None
    if TensorDescriptor is not None and A.is_cuda and K >= 64 and N >= 64:
        if A.data_ptr() % 16 != 0:
            A = A.clone()
        BM, BK = 128, 64
        if triton.cdiv(M, 128) * triton.cdiv(N, 256) >= 120:
            BN = 256
        else:
            BN = 128
        grid = (triton.cdiv(M, BM) * triton.cdiv(N, BN),)
        ad = TensorDescriptor(A, [M, K], [K, 1], [BM, BK])
        bd = TensorDescriptor(B, [K, N], [N, 1], [BK, BN])
        _gemm_tma[grid](ad, bd, C, bias, M, N, K, HAS_BIAS=hb, BM=BM, BN=BN, BK=BK, GM=8,
                        num_warps=8, num_stages=4)
    else:
        BM = 64 if M > 32 else 16
        BN, BK = 64, 64
        grid = (triton.cdiv(M, BM) * triton.cdiv(N, BN),)
        _gemm_ptr[grid](A, B, C, bias, M, N, K, HAS_BIAS=hb, BM=BM, BN=BN, BK=BK, GM=8,
                        num_warps=4, num_stages=3)


@triton.jit
def _columns_kernel(A, P, O, K, ncb, BLOCK: tl.constexpr):
    # O[i, j] = A[i, P[j]]
    pid = tl.program_id(0)
    r = pid // ncb
    cb = pid - r * ncb
    c = cb * BLOCK + tl.arange(0, BLOCK)
    cm = c < K
    i = tl.load(P + c, mask=cm, other=0)
    r64 = r.to(tl.int64) * K
    x = tl.load(A + r64 + i, mask=cm, other=0.0)
    tl.store(O + r64 + c, x, mask=cm)


def _columns(a, perm):
    M, K = a.shape
    out = torch.empty((M, K), dtype=a.dtype, device=a.device)
    BLOCK = 1024
    ncb = triton.cdiv(K, BLOCK)
    _columns_kernel[(M * ncb,)](a, perm, out, K, ncb, BLOCK=BLOCK, num_warps=4)
    return out


@triton.jit
def _scale_place(n, ONE: tl.constexpr):
    # where the scale of column n lies within its group
    if ONE:
        c = n % 32
        r = (n - c) + 8 * ((c % 8) // 2) + 2 * (c // 8) + c % 2
    else:
        c = n % 64
        r = (n - c) + 8 * (c % 8) + c // 8
    return r


@triton.jit
def _zero_word(n):
    # number of the word, in a row of zero points, that has column n's
    c = n % 64
    return ((n - c) + 8 * (c % 8) + c // 8) // 8


@triton.jit
def _zero_of(zw, n):
    # the zero points of columns n, plus 2^23
    e = (n % 64) // 8
    z = (zw >> (4 * (e // 2 + 4 * (e % 2)))) & 15
    return z.to(tl.float32) + 8388608.0


@triton.jit
def _flt(c):
    # 2^23 + c
    return (c | 0x4B000000).to(tl.float32, bitcast=True)


@triton.jit
def _words_to_tile(x, BITS: tl.constexpr, T: tl.constexpr, PB: tl.constexpr):
    # words of T tiles of 16 rows, PB eighths of their 64 columns -> (16 T, 8 PB) of 2^23 + code.
    # With p and q the number of a column's eighth and of a pair of rows, a word of 4 bits has number
    # 16 p + 4 q + w, one of 8 bits 32 p + 8 q + 2 w + s.
    if BITS == 4:
        y = tl.reshape(x, [T, PB, 4, 4])
        # lowest nibble first: code 2 s + h + 4 b
        b0 = tl.join(_flt(y & 15), _flt((y >> 16) & 15))            # s 0, h 0
        b1 = tl.join(_flt((y >> 4) & 15), _flt((y >> 20) & 15))     # s 0, h 1
        b2 = tl.join(_flt((y >> 8) & 15), _flt((y >> 24) & 15))     # s 1, h 0
        b3 = tl.join(_flt((y >> 12) & 15), _flt((y >> 28) & 15))    # s 1, h 1
        t = tl.join(tl.join(b0, b1), tl.join(b2, b3))               # T, p, q, w, b, h, s
        t = tl.permute(t, (0, 5, 2, 4, 3, 6, 1))
        r = tl.reshape(t, [16 * T, 8 * PB])
    else:
        y = tl.reshape(x, [T, PB, 4, 8])
        # lowest byte first: code h + 2 b
        b0 = tl.join(_flt(y & 255), _flt((y >> 16) & 255))
        b1 = tl.join(_flt((y >> 8) & 255), _flt((y >> 24) & 255))
        t = tl.join(b0, b1)                                         # T, p, q, 2 w + s, b, h
        t = tl.permute(t, (0, 5, 2, 4, 3, 1))
        r = tl.reshape(t, [16 * T, 8 * PB])
    return r


@triton.jit
def _tile_columns(nt, ph, PB: tl.constexpr):
    # columns of such a tile: 64 nt + 8 (2 w + s) + p
    c = tl.arange(0, 8 * PB)
    return nt * 64 + 8 * (c // PB) + ph * PB + c % PB


@triton.jit
def _fused_kernel(A, QW, S, Z, Bias, C, W, M, K, N, GS, NG, npn, tiles, KC, BITS: tl.constexpr, ONE: tl.constexpr,
                  HAS_Z: tl.constexpr, HAS_BIAS: tl.constexpr, BM: tl.constexpr, PB: tl.constexpr,
                  T: tl.constexpr, SPLIT: tl.constexpr):
    BK: tl.constexpr = 16 * T
    BN: tl.constexpr = 8 * PB
    TW: tl.constexpr = 32 * BITS          # words of a tile
    PW: tl.constexpr = 4 * BITS * PB      # of which a program takes so many
    PARTS: tl.constexpr = 8 // PB
    pid = tl.program_id(0)
    if SPLIT:
        # a piece of KC rows, a multiple of BK
        part = pid // tiles
        pid = pid - part * tiles
        k0 = part * KC
        k1 = tl.minimum(k0 + KC, K)
    else:
        k0 = 0
        k1 = K
    pm = pid // npn
    pn = pid - pm * npn
    nt = pn // PARTS
    ph = pn % PARTS
    n = _tile_columns(nt, ph, PB)
    m = pm * BM + tl.arange(0, BM)
    mm = m < M
    RW = (N // 64).to(tl.int64) * TW
    ap = A + (m.to(tl.int64) * K)[:, None] + tl.arange(0, BK)[None, :]
    qp = QW + (tl.arange(0, T).to(tl.int64) * RW)[:, None] + (nt * TW + ph * PW + tl.arange(0, PW))[None, :]
    sp = S + _scale_place(n, ONE)
    sq = sp
    if HAS_Z:
        zp = Z + _zero_word(n)
        zq = zp
    if SPLIT:
        ap += k0
        qp += (k0 // 16).to(tl.int64) * RW
        g0 = (k0 // GS).to(tl.int64)
        sq = sp + g0 * N
        if HAS_Z:
            zq = zp + g0 * (N // 8)
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    s_next = tl.load(sq)
    if HAS_Z:
        z_next = tl.load(zq)
    for k in range(k0, k1, BK):
        a = tl.load(ap, mask=mm[:, None], other=0.0)
        x = tl.load(qp)
        s = s_next.to(tl.float32)
        g = tl.minimum((k + BK) // GS, NG - 1).to(tl.int64)
        s_next = tl.load(sp + g * N)
        t = _words_to_tile(x, BITS, T, PB)
        if HAS_Z:
            z = _zero_of(z_next, n)
            z_next = tl.load(zp + g * (N // 8))
            b = (t - z[None, :]).to(A.dtype.element_ty)
        elif BITS == 4:
            b = (t - 8388616.0).to(A.dtype.element_ty)
        else:
            b = (t - 8388736.0).to(A.dtype.element_ty)
        acc += tl.dot(a, b) * s[None, :]
        ap += BK
        qp += T * RW
    if SPLIT:
        row = part.to(tl.int64) * M + m
        tl.store(W + (row * N)[:, None] + n[None, :], acc, mask=mm[:, None])
    else:
        if HAS_BIAS:
            acc += tl.load(Bias + _bias_place(n)).to(tl.float32)[None, :]
        tl.store(C + (m.to(tl.int64) * N)[:, None] + n[None, :], acc.to(C.dtype.element_ty), mask=mm[:, None])


@triton.jit
def _add_kernel(W, Bias, C, MN, N, P, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr):
    # adds the pieces of k up
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    em = e < MN
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    wp = W + e
    for p in range(0, P):
        acc += tl.load(wp, mask=em, other=0.0)
        wp += MN
    if HAS_BIAS:
        acc += tl.load(Bias + _bias_place(e % N), mask=em, other=0.0).to(tl.float32)
    tl.store(C + e, acc.to(C.dtype.element_ty), mask=em)


@triton.jit
def _gemv_kernel(A, QW, S, Z, Bias, C, K, N, GS, BITS: tl.constexpr, ONE: tl.constexpr, HAS_Z: tl.constexpr,
                 HAS_BIAS: tl.constexpr, PB: tl.constexpr, TB: tl.constexpr):
    # one row of a; a program takes PB eighths of 64 columns
    TW: tl.constexpr = 32 * BITS
    PW: tl.constexpr = 4 * BITS * PB
    PARTS: tl.constexpr = 8 // PB
    LW: tl.constexpr = BITS               # words of a p and q
    pn = tl.program_id(0)
    nt = pn // PARTS
    ph = pn % PARTS
    c = tl.arange(0, PW)
    p = c // (4 * LW)
    q = (c // LW) % 4
    w = c % LW
    KT = K // 16
    RW = (N // 64) * TW
    if BITS == 4:
        n0 = nt * 64 + 16 * w + ph * PB + p
    else:
        n0 = nt * 64 + 8 * w + ph * PB + p
    p0 = _scale_place(n0, ONE)
    p1 = _scale_place(n0 + 8, ONE)
    acc0 = tl.zeros([TB, PW], dtype=tl.float32)
    acc1 = tl.zeros([TB, PW], dtype=tl.float32)
    for t0 in range(0, KT, TB):
        t = t0 + tl.arange(0, TB)
        tm = (t < KT)[:, None]
        x = tl.load(QW + (t.to(tl.int64) * RW)[:, None] + (nt * TW + ph * PW + c)[None, :], mask=tm, other=0)
        g = ((t * 16) // GS).to(tl.int64)
        ak = A + (t * 16)[:, None] + (2 * q)[None, :]
        a00 = tl.load(ak, mask=tm, other=0.0).to(tl.float32)           # h 0, b 0
        a01 = tl.load(ak + 1, mask=tm, other=0.0).to(tl.float32)       # h 0, b 1
        a10 = tl.load(ak + 8, mask=tm, other=0.0).to(tl.float32)       # h 1, b 0
        a11 = tl.load(ak + 9, mask=tm, other=0.0).to(tl.float32)       # h 1, b 1
        s0 = tl.load(S + (g * N)[:, None] + p0[None, :], mask=tm, other=0.0).to(tl.float32)
        if BITS == 4:
            s1 = tl.load(S + (g * N)[:, None] + p1[None, :], mask=tm, other=0.0).to(tl.float32)
            if HAS_Z:
                zr = Z + (g * (N // 8))[:, None]
                z0 = _zero_of(tl.load(zr + _zero_word(n0)[None, :], mask=tm, other=0), n0[None, :])
                z1 = _zero_of(tl.load(zr + _zero_word(n0 + 8)[None, :], mask=tm, other=0), (n0 + 8)[None, :])
            else:
                z0 = 8388616.0
                z1 = 8388616.0
            u = a00 * (_flt(x & 15) - z0)
            u += a10 * (_flt((x >> 4) & 15) - z0)
            u += a01 * (_flt((x >> 16) & 15) - z0)
            u += a11 * (_flt((x >> 20) & 15) - z0)
            acc0 += u * s0
            v = a00 * (_flt((x >> 8) & 15) - z1)
            v += a10 * (_flt((x >> 12) & 15) - z1)
            v += a01 * (_flt((x >> 24) & 15) - z1)
            v += a11 * (_flt((x >> 28) & 15) - z1)
            acc1 += v * s1
        else:
            u = a00 * (_flt(x & 255) - 8388736.0)
            u += a10 * (_flt((x >> 8) & 255) - 8388736.0)
            u += a01 * (_flt((x >> 16) & 255) - 8388736.0)
            u += a11 * (_flt((x >> 24) & 255) - 8388736.0)
            acc0 += u * s0
    r0 = tl.sum(tl.reshape(tl.sum(acc0, axis=0), [PB, 4, LW]), axis=1)
    pp = tl.arange(0, PB)[:, None]
    ww = tl.arange(0, LW)[None, :]
    if BITS == 4:
        r1 = tl.sum(tl.reshape(tl.sum(acc1, axis=0), [PB, 4, LW]), axis=1)
        n = nt * 64 + 16 * ww + ph * PB + pp
        if HAS_BIAS:
            r0 += tl.load(Bias + _bias_place(n)).to(tl.float32)
            r1 += tl.load(Bias + _bias_place(n + 8)).to(tl.float32)
        tl.store(C + n, r0.to(C.dtype.element_ty))
        tl.store(C + n + 8, r1.to(C.dtype.element_ty))
    else:
        n = nt * 64 + 8 * ww + ph * PB + pp
        if HAS_BIAS:
            r0 += tl.load(Bias + _bias_place(n)).to(tl.float32)
        tl.store(C + n, r0.to(C.dtype.element_ty))


@triton.jit
def _expand_kernel(QW, S, Z, GI, D, K, N, GS, NT, BITS: tl.constexpr, ONE: tl.constexpr, HAS_Z: tl.constexpr,
                   HAS_G: tl.constexpr, T: tl.constexpr):
    # T tiles, one below the other -> (16 T, 64) of W
    TW: tl.constexpr = 32 * BITS
    pid = tl.program_id(0)
    kb = pid // NT
    nt = pid - kb * NT
    RW = NT * TW
    t = kb * T + tl.arange(0, T)
    x = tl.load(QW + (t.to(tl.int64) * RW)[:, None] + (nt * TW + tl.arange(0, TW))[None, :],
                mask=(t < K // 16)[:, None], other=0)
    f = _words_to_tile(x, BITS, T, 8)
    k = kb * (16 * T) + tl.arange(0, 16 * T)
    km = k < K
    n = nt * 64 + tl.arange(0, 64)
    place = _scale_place(n, ONE)
    if HAS_G:
        g = tl.load(GI + k, mask=km, other=0).to(tl.int64)
        s = tl.load(S + (g * N)[:, None] + place[None, :], mask=km[:, None], other=0.0).to(tl.float32)
        if HAS_Z:
            zw = tl.load(Z + (g * (N // 8))[:, None] + _zero_word(n)[None, :], mask=km[:, None], other=0)
            f = f - _zero_of(zw, n[None, :])
    else:
        # the tile lies in one group
        g = ((kb * (16 * T)) // GS).to(tl.int64)
        s = tl.load(S + g * N + place).to(tl.float32)[None, :]
        if HAS_Z:
            f = f - _zero_of(tl.load(Z + g * (N // 8) + _zero_word(n)), n)[None, :]
    if not HAS_Z:
        if BITS == 4:
            f = f - 8388616.0
        else:
            f = f - 8388736.0
    y = f * s
    tl.store(D + (k.to(tl.int64) * N)[:, None] + n[None, :], y.to(D.dtype.element_ty), mask=km[:, None])


def gptq_marlin_gemm(a, c_or_none, b_q_weight, b_bias_or_none, b_scales, a_scales, global_scale, b_zeros_or_none,
                     g_idx_or_none, perm_or_none, workspace, b_type_id, size_m, size_n, size_k, is_k_full,
                     use_atomic_add, use_fp32_reduce, is_zp_float):
    M, K = a.shape
    N = int(size_n)
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    b_type_id = int(b_type_id)
    bits = 8 if b_type_id == 1125899923621888 else 4
    zeros = b_zeros_or_none
    if zeros is not None and (b_type_id != 1125899906843648 or zeros.numel() == 0):
        zeros = None
    bias = b_bias_or_none
    if bias is not None and bias.numel() == 0:
        bias = None
    g_idx = g_idx_or_none
    if g_idx is not None and g_idx.numel() == 0:
        g_idx = None
    perm = perm_or_none
    if perm is not None and perm.numel() == 0:
        perm = None
    G = b_scales.shape[0]
    GS = K // G
    one = G == 1
    if G == 1:
        g_idx = None
    if perm is None and g_idx is None and M <= 64:
        T = 8 if GS % 128 == 0 else (4 if GS % 64 == 0 else 2)
        if M == 1 and K < 128 * T:
            PB = 2
            TB = 64 if bits == 4 else 32
            _gemv_kernel[((N // 64) * (8 // PB),)](
                a, b_q_weight, b_scales, zeros, bias, out, K, N, GS, BITS=bits, ONE=one, HAS_Z=zeros is not None,
                HAS_BIAS=bias is not None, PB=PB, TB=TB, num_warps=8)
            return out
        BM = max(16, triton.next_power_of_2(M))
        PB = 8 if N // 64 >= 112 else 4
        npn = (N // 64) * (8 // PB)
        tiles = triton.cdiv(M, BM) * npn
        # pieces of k, of eight steps and more, where there are too few programs to hide each other's waiting
        BK = 16 * T
        P = min(1056 // tiles, K // (8 * BK), 32)
        KC = K
        if P > 1:
            KC = triton.cdiv(triton.cdiv(K, P), BK) * BK
            P = triton.cdiv(K, KC)
        split = P > 1
        w = torch.empty((P, M, N), dtype=torch.float32, device=a.device) if split else out
        _fused_kernel[(tiles * (P if split else 1),)](
            a, b_q_weight, b_scales, zeros, bias, out, w, M, K, N, GS, G, npn, tiles, KC, BITS=bits, ONE=one,
            HAS_Z=zeros is not None, HAS_BIAS=bias is not None, BM=BM, PB=PB, T=T, SPLIT=split, num_warps=4,
            num_stages=5 if BM <= 32 else 4)
        if split:
            BLOCK = 512 if M * N >= 65536 else 128
            _add_kernel[(triton.cdiv(M * N, BLOCK),)](w, bias, out, M * N, N, P, HAS_BIAS=bias is not None,
                                                      BLOCK=BLOCK, num_warps=4)
        return out
    if perm is not None:
        a = _columns(a, perm)
    w = torch.empty((K, N), dtype=a.dtype, device=a.device)
    T = 8 if GS % 128 == 0 else (4 if GS % 64 == 0 else 2)
    NT = N // 64
    _expand_kernel[(triton.cdiv(K, 16 * T) * NT,)](
        b_q_weight, b_scales, zeros, g_idx, w, K, N, GS, NT, BITS=bits, ONE=one, HAS_Z=zeros is not None,
        HAS_G=g_idx is not None, T=T, num_warps=4)
    _gemm(a, w, out, bias, M, N, K)
    return out

