import torch
import triton
import triton.language as tl

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except Exception:  # pragma: no cover
    TensorDescriptor = None


# The numbers of tiles (nm, nn) are computed on the host: tl.cdiv(M, BM) adds BM - 1 to M,
# which overflows int32 where M is near 2**31 - 1.

@triton.jit
def _mm_tma_kernel(a_desc, b_desc, c_desc, nm, nn, K,
                   A_T: tl.constexpr, B_T: tl.constexpr,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                   GROUP: tl.constexpr, OUT: tl.constexpr):
    pid = tl.program_id(0)
    width = GROUP * nn
    gid = pid // width
    first = gid * GROUP
    gsize = min(nm - first, GROUP)
    pm = first + (pid % width) % gsize
    pn = (pid % width) // gsize
    om = pm * BM
    on = pn * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for kt in range(0, tl.cdiv(K, BK)):
        ok = kt * BK
        if A_T:
            a = a_desc.load([ok, om]).T
        else:
            a = a_desc.load([om, ok])
        if B_T:
            b = b_desc.load([on, ok]).T
        else:
            b = b_desc.load([ok, on])
        acc = tl.dot(a, b, acc)
    c_desc.store([om, on], acc.to(OUT))


@triton.jit
def _gemm_tma(ad, bd, cd, nm, nn, tiles, K, AT: tl.constexpr, BT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              BK: tl.constexpr, GM: tl.constexpr, SUB: tl.constexpr):
    # one program a multiprocessor, tile after tile; what is outside of the matrices reads as 0
    per = nm * nn
    kt = tl.cdiv(K, BK)
    for t in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        z = t // per
        u = t % per
        first = (u // (GM * nn)) * GM
        gsz = tl.minimum(nm - first, GM)
        m0 = (first + (u % (GM * nn)) % gsz) * BM
        n0 = ((u % (GM * nn)) // gsz) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(kt):
            if AT:
                x = ad.load([z, k * BK, m0]).reshape(BK, BM).T
            else:
                x = ad.load([z, m0, k * BK]).reshape(BM, BK)
            if BT:
                y = bd.load([z, n0, k * BK]).reshape(BN, BK).T
            else:
                y = bd.load([z, k * BK, n0]).reshape(BK, BN)
            acc = tl.dot(x, y, acc)
        if SUB:
            h = acc.reshape(BM, 2, BN // 2).permute(0, 2, 1)
            c0, c1 = h.split()
            cd.store([z, m0, n0], c0.to(cd.dtype).reshape(1, BM, BN // 2))
            cd.store([z, m0, n0 + BN // 2], c1.to(cd.dtype).reshape(1, BM, BN // 2))
        else:
            cd.store([z, m0, n0], acc.to(cd.dtype).reshape(1, BM, BN))


@triton.jit
def _rows_tma(ad, bd, cd, nm, nn, CH, BT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # few terms a sum (K up to BK): a program keeps its rows of the first matrix and goes along CH tiles of columns.
    # Nothing is prefetched inside of a program: little shared memory, so that three of them share a multiprocessor.
    pid = tl.program_id(0)
    nc = (nn + CH - 1) // CH
    per = nm * nc
    z = pid // per
    u = pid % per
    m0 = (u // nc) * BM
    j0 = (u % nc) * CH
    x = ad.load([z, m0, 0]).reshape(BM, BK)
    for j in tl.range(j0, tl.minimum(j0 + CH, nn), num_stages=1):
        if BT:
            y = bd.load([z, j * BN, 0]).reshape(BN, BK).T
        else:
            y = bd.load([z, 0, j * BN]).reshape(BK, BN)
        acc = tl.dot(x, y)
        cd.store([z, m0, j * BN], acc.to(cd.dtype).reshape(1, BM, BN))


@triton.jit
def _mm_kernel(a_ptr, b_ptr, c_ptr, M, N, K, nm, nn,
               sam, sak, sbk, sbn, scm, scb,
               n1, n2,
               sa0, sa1, sa2, sb0, sb1, sb2,
               UPCAST: tl.constexpr, EVEN_K: tl.constexpr,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
               GROUP: tl.constexpr):
    per = nm * nn
    pid0 = tl.program_id(0)
    bid = pid0 // per
    pid = pid0 % per
    width = GROUP * nn
    gid = pid // width
    first = gid * GROUP
    gsize = min(nm - first, GROUP)
    pm = first + (pid % width) % gsize
    pn = (pid % width) // gsize

    i2 = (bid % n2).to(tl.int64)
    r = bid // n2
    i1 = (r % n1).to(tl.int64)
    i0 = (r // n1).to(tl.int64)
    a_ptr += i0 * sa0 + i1 * sa1 + i2 * sa2
    b_ptr += i0 * sb0 + i1 * sb1 + i2 * sb2
    c_ptr += bid.to(tl.int64) * scb

    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    mm = rm < M
    mn = rn < N
    rm64 = rm.to(tl.int64)
    rn64 = rn.to(tl.int64)
    rk64 = rk.to(tl.int64)
    ap = a_ptr + rm64[:, None] * sam + rk64[None, :] * sak
    bp = b_ptr + rk64[:, None] * sbk + rn64[None, :] * sbn
    stepa = BK * tl.cast(sak, tl.int64)
    stepb = BK * tl.cast(sbk, tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for kt in range(0, tl.cdiv(K, BK)):
        if EVEN_K:
            a = tl.load(ap, mask=mm[:, None], other=0.0)
            b = tl.load(bp, mask=mn[None, :], other=0.0)
        else:
            mk = rk < K - kt * BK
            a = tl.load(ap, mask=mm[:, None] & mk[None, :], other=0.0)
            b = tl.load(bp, mask=mk[:, None] & mn[None, :], other=0.0)
        if UPCAST:
            a = a.to(tl.float32)
            b = b.to(tl.float32)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        ap += stepa
        bp += stepb
    cp = c_ptr + rm64[:, None] * scm + rn64[None, :]
    tl.store(cp, acc.to(c_ptr.dtype.element_ty), mask=mm[:, None] & mn[None, :])


@triton.jit
def _k_f64(a_ptr, b_ptr, s_ptr, c_ptr, N, K, nm, nn, sam, sak, sbk, sbn, ss, saz, sbz, scz,
           BATCH: tl.constexpr, BIAS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           GM: tl.constexpr):
    # float32 as such has no tensor cores; their float64 is as fast as float32 elsewhere. Whole tiles.
    pid = tl.program_id(0)
    if BATCH:
        z = (pid // (nm * nn)).to(tl.int64)
        pid = pid % (nm * nn)
        a_ptr += z * saz
        b_ptr += z * sbz
        c_ptr += z * scz
    first = (pid // (GM * nn)) * GM
    gsz = tl.minimum(nm - first, GM)
    pm = first + (pid % (GM * nn)) % gsz
    pn = (pid % (GM * nn)) // gsz
    rk = tl.arange(0, BK).to(tl.int64)
    rm = pm.to(tl.int64) * BM + tl.arange(0, BM)
    rn = pn.to(tl.int64) * BN + tl.arange(0, BN)
    ap = a_ptr + rm[:, None] * sam + rk[None, :] * sak
    bp = b_ptr + rk[:, None] * sbk + rn[None, :] * sbn
    astep = tl.cast(sak, tl.int64) * BK
    bstep = tl.cast(sbk, tl.int64) * BK
    acc = tl.zeros((BM, BN), tl.float64)
    if BIAS:
        acc += tl.load(s_ptr + rn * ss).to(tl.float64)[None, :]
    for k in range(0, K // BK):
        x = tl.load(ap)
        y = tl.load(bp)
        acc = tl.dot(x.to(tl.float64), y.to(tl.float64), acc, input_precision="ieee", out_dtype=tl.float64)
        ap += astep
        bp += bstep
    tl.store(c_ptr + (rm * N)[:, None] + rn[None, :], acc.to(tl.float32))


@triton.jit
def _mm_rank1_kernel(a_ptr, b_ptr, c_ptr, M, N, K, nm, nn,
                     sam, sak, sbk, sbn, scm, scb,
                     n1, n2,
                     sa0, sa1, sa2, sb0, sb1, sb2,
                     CPLX: tl.constexpr, ACC: tl.constexpr,
                     BM: tl.constexpr, BN: tl.constexpr):
    per = nm * nn
    pid0 = tl.program_id(0)
    bid = pid0 // per
    pid = pid0 % per
    pm = pid // nn
    pn = pid % nn
    i2 = (bid % n2).to(tl.int64)
    r = bid // n2
    i1 = (r % n1).to(tl.int64)
    i0 = (r // n1).to(tl.int64)
    W: tl.constexpr = 2 if CPLX else 1
    a_ptr += W * (i0 * sa0 + i1 * sa1 + i2 * sa2)
    b_ptr += W * (i0 * sb0 + i1 * sb1 + i2 * sb2)
    c_ptr += W * (bid.to(tl.int64) * scb)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    mm = rm < M
    mn = rn < N
    rm64 = rm.to(tl.int64)
    rn64 = rn.to(tl.int64)
    ap = a_ptr + W * (rm64 * sam)
    bp = b_ptr + W * (rn64 * sbn)
    stepa = W * tl.cast(sak, tl.int64)
    stepb = W * tl.cast(sbk, tl.int64)
    acc = tl.zeros((BM, BN), dtype=ACC)
    if CPLX:
        acci = tl.zeros((BM, BN), dtype=ACC)
        for k in range(0, K):
            ar = tl.load(ap, mask=mm, other=0.0)
            ai = tl.load(ap + 1, mask=mm, other=0.0)
            br = tl.load(bp, mask=mn, other=0.0)
            bi = tl.load(bp + 1, mask=mn, other=0.0)
            acc += ar[:, None] * br[None, :]
            acc -= ai[:, None] * bi[None, :]
            acci += ar[:, None] * bi[None, :]
            acci += ai[:, None] * br[None, :]
            ap += stepa
            bp += stepb
        cp = c_ptr + 2 * (rm64[:, None] * scm + rn64[None, :])
        msk = mm[:, None] & mn[None, :]
        tl.store(cp, acc, mask=msk)
        tl.store(cp + 1, acci, mask=msk)
    else:
        for k in range(0, K):
            ar = tl.load(ap, mask=mm, other=0.0)
            br = tl.load(bp, mask=mn, other=0.0)
            acc += ar[:, None] * br[None, :]
            ap += stepa
            bp += stepb
        cp = c_ptr + rm64[:, None] * scm + rn64[None, :]
        tl.store(cp, acc, mask=mm[:, None] & mn[None, :])


@triton.jit
def _gemv_kernel(a_ptr, x_ptr, o_ptr, M, K, nm,
                 sam, sak, sxk, sob,
                 n1, n2,
                 sa0, sa1, sa2, sx0, sx1, sx2,
                 ACC: tl.constexpr, EVEN: tl.constexpr,
                 BM: tl.constexpr, BK: tl.constexpr):
    pid0 = tl.program_id(0)
    bid = pid0 // nm
    pm = pid0 % nm
    i2 = (bid % n2).to(tl.int64)
    r = bid // n2
    i1 = (r % n1).to(tl.int64)
    i0 = (r // n1).to(tl.int64)
    a_ptr += i0 * sa0 + i1 * sa1 + i2 * sa2
    x_ptr += i0 * sx0 + i1 * sx1 + i2 * sx2
    o_ptr += bid.to(tl.int64) * sob
    rm = pm * BM + tl.arange(0, BM)
    rk = tl.arange(0, BK)
    mm = rm < M
    rm64 = rm.to(tl.int64)
    rk64 = rk.to(tl.int64)
    ap = a_ptr + rm64[:, None] * sam + rk64[None, :] * sak
    xp = x_ptr + rk64 * sxk
    stepa = BK * tl.cast(sak, tl.int64)
    stepx = BK * tl.cast(sxk, tl.int64)
    acc = tl.zeros((BM, BK), dtype=ACC)
    for kt in range(0, tl.cdiv(K, BK)):
        if EVEN:
            a = tl.load(ap).to(ACC)
            x = tl.load(xp).to(ACC)
        else:
            mk = rk < K - kt * BK
            a = tl.load(ap, mask=mm[:, None] & mk[None, :], other=0.0).to(ACC)
            x = tl.load(xp, mask=mk, other=0.0).to(ACC)
        acc += a * x[None, :]
        ap += stepa
        xp += stepx
    res = tl.sum(acc, axis=1)
    tl.store(o_ptr + rm64, res.to(o_ptr.dtype.element_ty), mask=mm)


def _pow2(n):
    return 1 << max(0, (int(n) - 1).bit_length())


def _cdiv(a, b):
    return (int(a) + b - 1) // b


def _collapse(sizes, *strides):
    """merge neighbouring dimensions; returns sizes and stride lists"""
    dims = []
    for i, s in enumerate(sizes):
        if s == 1:
            continue
        st = [x[i] for x in strides]
        if dims:
            ps, pst = dims[-1]
            if all(p == q * s for p, q in zip(pst, st)):
                dims[-1] = (ps * s, st)
                continue
        dims.append((s, st))
    return dims


def _tma_ok(t2, es):
    # t2: (ptr, rows, cols, stride_r, stride_c); returns None / False / True (transposed)
    ptr, rows, cols, sr, sc = t2
    if ptr % 16:
        return None
    if sc == 1 and sr >= cols and (sr * es) % 16 == 0:
        return False
    if sr == 1 and sc >= rows and (sc * es) % 16 == 0:
        return True
    return None


def _ok(t):
    # rows along memory, aligned, none of which overlaps another
    Z, R, C = t.shape
    s0, s1, s2 = t.stride()
    if Z == 1:
        s0 = 8
    return (s2 == 1 and s1 % 8 == 0 and s1 >= C and s0 % 8 == 0 and s0 > 0 and t.data_ptr() % 16 == 0
            and (Z - 1) * s0 + R * s1 < 2 ** 38 and max(Z, R, C) < 2 ** 30)


def _desc(t, block):
    Z, R, C = (int(v) for v in t.shape)
    s0, s1, _ = t.stride()
    return TensorDescriptor(t, [Z, R, C], [int(s0) if Z > 1 else R * int(s1), int(s1), 1], [1] + block)


def _tma3(a, b, c, Z, M, N, K):
    # large products of 16-bit numbers by tensor descriptors; False where that is not possible
    if TensorDescriptor is None or N % 8 != 0 or not _ok(a):
        return False
    if _ok(b.mT):
        bt, t = True, b.mT
    elif _ok(b):
        bt, t = False, b
    else:
        return False
    try:
        if K <= 128:
            BM, BN, BK, CH = 128, 128, 128, 4
            nm, nn = triton.cdiv(M, BM), triton.cdiv(N, BN)
            progs = Z * nm * triton.cdiv(nn, CH)
            if K <= 64 or M < 256 or N < 512 or not 396 <= progs < 2 ** 30:
                return False
            _rows_tma[(progs,)](_desc(a, [BM, BK]), _desc(t, [BN, BK] if bt else [BK, BN]), _desc(c, [BM, BN]),
                                nm, nn, CH, BT=bt, BM=BM, BN=BN, BK=BK, num_warps=4, num_stages=1)
            return True
        if K < 256:
            return False
        BM, BN, BK, sub = (128, 256, 64, True) if N > 128 else (128, 128, 64, False)
        nm, nn = triton.cdiv(M, BM), triton.cdiv(N, BN)
        tiles = Z * nm * nn
        if not 264 <= tiles < 2 ** 30:
            return False
        _gemm_tma[(132,)](_desc(a, [BM, BK]), _desc(t, [BN, BK] if bt else [BK, BN]),
                          _desc(c, [BM, BN // 2 if sub else BN]), nm, nn, tiles, K,
                          AT=False, BT=bt, BM=BM, BN=BN, BK=BK, GM=8, SUB=sub, num_warps=8,
                          num_stages=4 if sub else 6)
    except Exception:
        return False
    return True


def matmul(self, other):
    a, b = self, other
    if a.is_complex():
        if a.is_conj():
            a = a.resolve_conj()
        if b.is_conj():
            b = b.resolve_conj()
    if a.is_neg():
        a = a.resolve_neg()
    if b.is_neg():
        b = b.resolve_neg()
    if a.dim() == 0 or b.dim() == 0:
        raise RuntimeError("both arguments to matmul need to be at least 1D")
    avec = a.dim() == 1
    bvec = b.dim() == 1
    if avec:
        a = a.unsqueeze(0)
    if bvec:
        b = b.unsqueeze(1)
    M, K = a.shape[-2], a.shape[-1]
    K2, N = b.shape[-2], b.shape[-1]
    if K != K2:
        raise RuntimeError("matmul: inner dimensions differ")
    ab = list(a.shape[:-2])
    bb = list(b.shape[:-2])
    nb = max(len(ab), len(bb))
    ab = [1] * (nb - len(ab)) + ab
    bb = [1] * (nb - len(bb)) + bb
    batch = []
    for x, y in zip(ab, bb):
        if x == y:
            batch.append(x)
        elif x == 1:
            batch.append(y)
        elif y == 1:
            batch.append(x)
        else:
            raise RuntimeError("matmul: batch dimensions do not broadcast")
    oshape = list(batch)
    if not avec:
        oshape.append(M)
    if not bvec:
        oshape.append(N)
    dt = a.dtype
    nbatch = 1
    for s in batch:
        nbatch *= s
    if nbatch == 0 or M == 0 or N == 0:
        return torch.empty(oshape, dtype=dt, device=a.device)
    if K == 0:
        return torch.zeros(oshape, dtype=dt, device=a.device)
    out = torch.empty(oshape, dtype=dt, device=a.device)

    a = a.expand(batch + [M, K])
    b = b.expand(batch + [K, N])

    def strides_of(x, y):
        return _collapse(batch, list(x.stride()[:-2]), list(y.stride()[:-2]))

    dims = strides_of(a, b)
    sam, sak = a.stride()[-2], a.stride()[-1]
    sbk, sbn = b.stride()[-2], b.stride()[-1]

    # fold the batch into the rows (or the columns, for one row) where possible
    if len(dims) == 1 and dims[0][1][1] == 0 and (M == 1 or dims[0][1][0] == sam * M):
        if M == 1:
            sam = dims[0][1][0]
        M = M * dims[0][0]
        dims = []
        nbatch = 1
    if len(dims) > 3:
        a = a.contiguous()
        b = b.contiguous()
        dims = strides_of(a, b)
        sam, sak = a.stride()[-2], a.stride()[-1]
        sbk, sbn = b.stride()[-2], b.stride()[-1]
    dims = [(1, [0, 0])] * (3 - len(dims)) + dims
    n1, n2 = dims[1][0], dims[2][0]
    sa0, sa1, sa2 = (d[1][0] for d in dims)
    sb0, sb1, sb2 = (d[1][1] for d in dims)
    # one-element dimensions: a harmless stride
    if M == 1:
        sam = K if sak == 1 else 1
    if N == 1:
        sbn = 1 if sbk != 1 else K
    es = a.element_size()

    if dt.is_complex or dt == torch.float64:
        cplx = dt.is_complex
        if cplx:
            pa, pb, pc = torch.view_as_real(a), torch.view_as_real(b), torch.view_as_real(out)
        else:
            pa, pb, pc = a, b, out
        acc = tl.float64 if dt in (torch.float64, torch.complex128) else tl.float32
        BM = max(1, min(32 if cplx else 64, _pow2(M)))
        BN = max(1, min(64, _pow2(N)))
        BM = max(BM, 16)
        BN = max(BN, 16)
        nm, nn = _cdiv(M, BM), _cdiv(N, BN)
        grid = (nm * nn * nbatch,)
        _mm_rank1_kernel[grid](pa, pb, pc, M, N, K, nm, nn, sam, sak, sbk, sbn, N, M * N,
                               n1, n2, sa0, sa1, sa2, sb0, sb1, sb2,
                               CPLX=cplx, ACC=acc, BM=BM, BN=BN, num_warps=4)
        return out

    if N == 1 or M == 1:
        if N == 1:
            m_, x_ = a, b
            R, sr, sk, sx = M, sam, sak, sbk
            s0, s1, s2, t0, t1, t2 = sa0, sa1, sa2, sb0, sb1, sb2
        else:
            m_, x_ = b, a
            R, sr, sk, sx = N, sbn, sbk, sak
            s0, s1, s2, t0, t1, t2 = sb0, sb1, sb2, sa0, sa1, sa2
        if R > 1 and ((sr == 1 and sk != 1) or (K <= 16 and R >= 2048)):
            BM = min(128, max(16, _pow2(R)))
            BK = min(64, max(16, _pow2(K)))
            warps = 4
        else:
            if R >= 2048:
                BM = 8
            elif R >= 256:
                BM = 2
            else:
                BM = 1
            cap = 8192 // BM if BM > 1 else 4096
            if es == 4:
                cap //= 2
            BK = min(cap, max(32, _pow2(K)))
            warps = 4
        even = (R % BM == 0) and (K % BK == 0)
        nm = _cdiv(R, BM)
        grid = (nm * nbatch,)
        _gemv_kernel[grid](m_, x_, out, R, K, nm, sr, sk, sx, R, n1, n2,
                           s0, s1, s2, t0, t1, t2,
                           ACC=tl.float32, EVEN=even, BM=BM, BK=BK, num_warps=warps)
        return out

    half = es == 2
    if half and a.is_cuda and n1 == 1 and dims[0][0] == 1 and _tma3(
            a.as_strided((n2, M, K), (sa2, sam, sak)), b.as_strided((n2, K, N), (sb2, sbk, sbn)),
            out.view(n2, M, N), n2, M, N, K):
        return out
    if (half and TensorDescriptor is not None and a.is_cuda and nbatch == 1
            and M >= 256 and N >= 256 and K >= 128 and N % 8 == 0
            and M < 2 ** 31 - 512 and N < 2 ** 31 - 512 and K < 2 ** 31 - 512):
        ta = _tma_ok((a.data_ptr(), M, K, sam, sak), es)
        tb = _tma_ok((b.data_ptr(), K, N, sbk, sbn), es)
        if ta is not None and tb is not None and out.data_ptr() % 16 == 0:
            BM, BN, BK = 128, 256, 64
            if _cdiv(M, BM) * _cdiv(N, BN) < 132:
                BN = 128
            if ta:
                ad = TensorDescriptor(a, [K, M], [sak, 1], [BK, BM])
            else:
                ad = TensorDescriptor(a, [M, K], [sam, 1], [BM, BK])
            if tb:
                bd = TensorDescriptor(b, [N, K], [sbn, 1], [BN, BK])
            else:
                bd = TensorDescriptor(b, [K, N], [sbk, 1], [BK, BN])
            cd = TensorDescriptor(out, [M, N], [N, 1], [BM, BN])
            nm, nn = _cdiv(M, BM), _cdiv(N, BN)
            grid = (nm * nn,)
            _mm_tma_kernel[grid](ad, bd, cd, nm, nn, K, A_T=ta, B_T=tb,
                                 BM=BM, BN=BN, BK=BK, GROUP=8,
                                 OUT=tl.float16 if dt == torch.float16 else tl.bfloat16,
                                 num_warps=8 if BN == 256 else 4, num_stages=3)
            return out

    upcast = half and not a.is_cuda
    if half:
        BM = min(128, max(16, _pow2(M)))
        BN = min(128, max(16, _pow2(N)))
        BK = 64 if K > 32 else max(16, _pow2(K))
        warps = 8 if BM * BN >= 128 * 128 else 4
        stages = 3
        if BM * BN <= 32 * 32:
            warps = 2
    else:
        BM = min(128, max(16, _pow2(M)))
        BN = min(128, max(16, _pow2(N)))
        if _cdiv(M, BM) * _cdiv(N, BN) * nbatch < 132:
            BM = min(BM, 64)
            BN = min(BN, 64)
        BK = 16
        warps = 8 if BM * BN >= 128 * 128 else 4
        stages = 3
    if (not half and n1 == 1 and dims[0][0] == 1 and M % 64 == 0 and N % 128 == 0 and K % 16 == 0
            and nbatch * M * N >= 64 * 128 * 66 and nbatch * M * N * K >= 2 ** 24):
        # tensor cores; 128 registers: two programs a multiprocessor
        nm, nn = M // 64, N // 128
        _k_f64[(nm * nn * nbatch,)](a, b, out, out, N, K, nm, nn, sam, sak, sbk, sbn, 0, sa2, sb2, M * N,
                                    BATCH=nbatch > 1, BIAS=False, BM=64, BN=128, BK=16, GM=8, num_warps=8,
                                    num_stages=3, **({"maxnreg": 128} if a.is_cuda else {}))
        return out
    nm, nn = _cdiv(M, BM), _cdiv(N, BN)
    grid = (nm * nn * nbatch,)
    _mm_kernel[grid](a, b, out, M, N, K, nm, nn, sam, sak, sbk, sbn, N, M * N,
                     n1, n2, sa0, sa1, sa2, sb0, sb1, sb2,
                     UPCAST=upcast, EVEN_K=(K % BK == 0),
                     BM=BM, BN=BN, BK=BK, GROUP=8,
                     num_warps=warps, num_stages=stages)
    return out

