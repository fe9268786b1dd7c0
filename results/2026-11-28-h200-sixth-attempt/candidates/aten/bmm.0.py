import torch
import triton
import triton.language as tl

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except Exception:
    TensorDescriptor = None


@triton.jit
def _dot_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    sab, sam, sak, sbb, sbk, sbn, tiles_m, tiles_n,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    EVEN_MN: tl.constexpr, EVEN_K: tl.constexpr, F64: tl.constexpr,
):
    pid = tl.program_id(0)
    per = tiles_m * tiles_n
    z = (pid // per).to(tl.int64)
    t = pid % per
    width = GROUP * tiles_n
    g = t // width
    first = g * GROUP
    gs = tl.minimum(tiles_m - first, GROUP)
    tm = first + (t % width) % gs
    tn = (t % width) // gs
    rm = tm.to(tl.int64) * BM + tl.arange(0, BM)
    rn = tn.to(tl.int64) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    rml = rm
    rnl = rn
    step_a = BK * tl.cast(sak, tl.int64)
    step_b = BK * tl.cast(sbk, tl.int64)
    rkl = rk.to(tl.int64)
    ap = a_ptr + z * sab + rml[:, None] * sam + rkl[None, :] * sak
    bp = b_ptr + z * sbb + rkl[:, None] * sbk + rnl[None, :] * sbn
    acc = tl.zeros([BM, BN], tl.float64 if F64 else tl.float32)
    nk = tl.cdiv(K, BK)
    for kb in range(0, nk):
        if EVEN_K:
            if EVEN_MN:
                a = tl.load(ap)
                b = tl.load(bp)
            else:
                a = tl.load(ap, mask=(rm < M)[:, None], other=0.0)
                b = tl.load(bp, mask=(rn < N)[None, :], other=0.0)
        else:
            km = (kb * BK + rk) < K
            a = tl.load(ap, mask=(rm < M)[:, None] & km[None, :], other=0.0)
            b = tl.load(bp, mask=km[:, None] & (rn < N)[None, :], other=0.0)
        if F64:
            # float32 as such has no tensor cores; their float64 is as fast as float32 elsewhere
            acc = tl.dot(a.to(tl.float64), b.to(tl.float64), acc, input_precision="ieee", out_dtype=tl.float64)
        else:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        ap += step_a
        bp += step_b
    cp = c_ptr + z * M * N + rml[:, None] * N + rn[None, :]
    out = acc.to(c_ptr.dtype.element_ty)
    if EVEN_MN:
        tl.store(cp, out)
    else:
        tl.store(cp, out, mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def _outer_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, sab, sam, sak, sbb, sbk, sbn, tiles_m, tiles_n,
    BM: tl.constexpr, BN: tl.constexpr, CPLX: tl.constexpr,
):
    # float64 accumulation, one term after the other; strides of complex operands in real numbers
    pid = tl.program_id(0)
    per = tiles_m * tiles_n
    z = (pid // per).to(tl.int64)
    t = pid % per
    tm = t // tiles_n
    tn = t % tiles_n
    rm = (tm * BM + tl.arange(0, BM)).to(tl.int64)
    rn = (tn * BN + tl.arange(0, BN)).to(tl.int64)
    mm = rm < M
    mn = rn < N
    ap = a_ptr + z * sab + rm * sam
    bp = b_ptr + z * sbb + rn * sbn
    acc = tl.zeros([BM, BN], tl.float64)
    acci = tl.zeros([BM, BN], tl.float64)
    for k in range(0, K):
        a = tl.load(ap, mask=mm, other=0.0).to(tl.float64)
        b = tl.load(bp, mask=mn, other=0.0).to(tl.float64)
        acc += a[:, None] * b[None, :]
        if CPLX:
            ai = tl.load(ap + 1, mask=mm, other=0.0).to(tl.float64)
            bi = tl.load(bp + 1, mask=mn, other=0.0).to(tl.float64)
            acc -= ai[:, None] * bi[None, :]
            acci += a[:, None] * bi[None, :]
            acci += ai[:, None] * b[None, :]
        ap += sak
        bp += sbk
    o = z * M * N + rm[:, None] * N + rn[None, :]
    m = mm[:, None] & mn[None, :]
    ty = c_ptr.dtype.element_ty
    if CPLX:
        tl.store(c_ptr + 2 * o, acc.to(ty), mask=m)
        tl.store(c_ptr + 2 * o + 1, acci.to(ty), mask=m)
    else:
        tl.store(c_ptr + o, acc.to(ty), mask=m)


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


def _tma(a, b, c, Z, M, N, K):
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


def _launch_dot(a, b, c, Z, M, N, K, BM, BN, BK, warps, stages, f64=False, **more):
    tm = triton.cdiv(M, BM)
    tn = triton.cdiv(N, BN)
    _dot_kernel[(Z * tm * tn,)](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), a.stride(2), b.stride(0), b.stride(1), b.stride(2), tm, tn,
        BM=BM, BN=BN, BK=BK, GROUP=8,
        EVEN_MN=(M % BM == 0 and N % BN == 0), EVEN_K=(K % BK == 0), F64=f64,
        num_warps=warps, num_stages=stages, **more,
    )


def bmm(self, mat2):
    a, b = self, mat2
    if a.is_conj() or a.is_neg():
        a = torch.empty(a.shape, dtype=a.dtype, device=a.device).copy_(a)
    if b.is_conj() or b.is_neg():
        b = torch.empty(b.shape, dtype=b.dtype, device=b.device).copy_(b)
    Z, M, K = a.shape
    N = b.shape[2]
    dt = a.dtype
    c = torch.empty((Z, M, N), dtype=dt, device=a.device)
    if c.numel() == 0:
        return c
    if dt.is_complex or dt == torch.float64:
        cplx = dt.is_complex
        if cplx:
            ar, br, cr = torch.view_as_real(a), torch.view_as_real(b), torch.view_as_real(c)
        else:
            ar, br, cr = a, b, c
        BM = BN = 32
        tm, tn = triton.cdiv(M, BM), triton.cdiv(N, BN)
        _outer_kernel[(Z * tm * tn,)](
            ar, br, cr, M, N, K,
            ar.stride(0), ar.stride(1), ar.stride(2), br.stride(0), br.stride(1), br.stride(2), tm, tn,
            BM=BM, BN=BN, CPLX=cplx, num_warps=4,
        )
        return c
    if dt == torch.float32:
        work = Z * M * N * K
        if work >= (1 << 24) and M % 64 == 0 and N % 128 == 0 and K % 16 == 0 and Z * M * N >= 64 * 128 * 66:
            # 128 registers: two programs a multiprocessor
            more = {"maxnreg": 128} if c.device.type == "cuda" else {}
            _launch_dot(a, b, c, Z, M, N, K, 64, 128, 16, 8, 3, f64=True, **more)
        elif work >= (1 << 30) and M % 128 == 0 and N % 128 == 0 and K % 64 == 0:
            # plain float32: numbers near 1e-38 lose their small parts when they are split
            _launch_dot(a, b, c, Z, M, N, K, 128, 64, 16, 8, 2)
        elif M >= 64 and N >= 64 and Z * M * N >= (1 << 20):
            _launch_dot(a, b, c, Z, M, N, K, 64, 64, 16, 4, 2)
        else:
            _launch_dot(a, b, c, Z, M, N, K, 32, 32, 32, 4, 2)
        return c
    if M >= 128 and N >= 128:
        if c.device.type == "cuda" and _tma(a, b, c, Z, M, N, K):
            return c
        if Z * triton.cdiv(M, 128) * triton.cdiv(N, 128) >= 132:
            stages = 2 if K <= 128 else 3
            _launch_dot(a, b, c, Z, M, N, K, 128, 128, 64, 8, stages)
        else:
            _launch_dot(a, b, c, Z, M, N, K, 64, 64, 64, 4, 4)
    elif M <= 16 and N <= 16:
        _launch_dot(a, b, c, Z, M, N, K, 16, 16, 64, 1, 2)
    elif M <= 16:
        _launch_dot(a, b, c, Z, M, N, K, 16, 64, 64, 4, 3)
    elif N <= 16:
        _launch_dot(a, b, c, Z, M, N, K, 64, 16, 64, 4, 3)
    else:
        _launch_dot(a, b, c, Z, M, N, K, 64, 64, 32, 4, 3)
    return c

