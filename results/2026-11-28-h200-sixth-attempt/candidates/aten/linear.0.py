import torch
import triton
import triton.language as tl

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except Exception:
    TensorDescriptor = None


@triton.jit
def _up(x, LB: tl.constexpr):
    # any real number to float32
    if LB:
        y = (x.to(tl.int16, bitcast=True).to(tl.int32) << 16).to(tl.float32, bitcast=True)
    else:
        y = x.to(tl.float32)
    return y


@triton.jit
def _st(p, y, m, SB: tl.constexpr):
    # store, rounded to the pointer's dtype
    if SB:
        u = y.to(tl.float32).to(tl.int32, bitcast=True)
        u = u + 0x7FFF + ((u >> 16) & 1)
        h = (u >> 16).to(tl.int16)
        h = tl.where(y == y, h, 0x7FC0)
        tl.store(p, h.to(tl.bfloat16, bitcast=True), mask=m)
    else:
        tl.store(p, y.to(p.dtype.element_ty), mask=m)


@triton.jit
def _k_mm(a_ptr, b_ptr, s_ptr, c_ptr, w_ptr, M, N, K, KC, npm, npn, sam, sak, sbn, sbk, ss,
          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr, EVEN: tl.constexpr,
          EVM: tl.constexpr, EVN: tl.constexpr, SPLIT: tl.constexpr,
          BIAS: tl.constexpr, UP: tl.constexpr, LB: tl.constexpr):
    # sizes, strides and offsets may pass 2**31 - 1, the numbers of tiles do not
    pid = tl.program_id(0)
    rk = tl.arange(0, BK)
    if SPLIT:
        sp = (pid // (npm * npn)).to(tl.int64)
        pid = pid % (npm * npn)
        k0 = sp * KC
        kl = tl.minimum(K - k0, KC).to(tl.int32)
        rkk = k0 + rk
    else:
        kl = K
        rkk = rk.to(tl.int64)
    per = GM * npn
    g = pid // per
    first = g * GM
    size = tl.minimum(npm - first, GM)
    pm = first + (pid % per) % size
    pn = (pid % per) // size
    rm = pm.to(tl.int64) * BM + tl.arange(0, BM)
    rn = pn.to(tl.int64) * BN + tl.arange(0, BN)
    if EVM:
        am = rm
    else:
        am = rm % M
    if EVN:
        bn = rn
    else:
        bn = rn % N
    ap = a_ptr + (am * sam)[:, None] + (rkk * sak)[None, :]
    bp = b_ptr + (rkk * sbk)[:, None] + (bn * sbn)[None, :]
    astep = tl.cast(sak, tl.int64) * BK
    bstep = tl.cast(sbk, tl.int64) * BK
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for k in range(0, tl.cdiv(kl, BK)):
        if EVEN:
            a = tl.load(ap)
            b = tl.load(bp)
        else:
            left = kl - k * BK
            a = tl.load(ap, mask=(rk < left)[None, :], other=0)
            b = tl.load(bp, mask=(rk < left)[:, None], other=0)
        if UP:
            a = _up(a, LB)
            b = _up(b, LB)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        ap += astep
        bp += bstep
    m = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT:
        tl.store(w_ptr + ((sp * M + rm) * N)[:, None] + rn[None, :], acc, mask=m)
    else:
        if BIAS:
            s = tl.load(s_ptr + rn * ss, mask=rn < N, other=0)
            acc = acc + _up(s, LB)[None, :]
        _st(c_ptr + (rm * N)[:, None] + rn[None, :], acc, m, LB)


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
def _k_tma(a_desc, b_desc, s_ptr, c_ptr, M, N, K, npm, npn, ss,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr, BIAS: tl.constexpr):
    # both operands run along k and begin at aligned addresses; what is outside of them reads as 0
    pid = tl.program_id(0)
    per = GM * npn
    g = pid // per
    first = g * GM
    size = tl.minimum(npm - first, GM)
    pm = first + (pid % per) % size
    pn = (pid % per) // size
    om = pm * BM
    on = pn * BN
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = a_desc.load([om, k * BK])
        b = b_desc.load([on, k * BK])
        acc = tl.dot(a, b.T, acc)
    rm = om.to(tl.int64) + tl.arange(0, BM)
    rn = on.to(tl.int64) + tl.arange(0, BN)
    if BIAS:
        s = tl.load(s_ptr + rn * ss, mask=rn < N, other=0)
        acc = acc + s.to(tl.float32)[None, :]
    tl.store(c_ptr + (rm * N)[:, None] + rn[None, :], acc.to(c_ptr.dtype.element_ty),
             mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def _k_pers(ad, bd, cd, s_ptr, N, K, nm, nn, tiles, ss, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            GM: tl.constexpr, BIAS: tl.constexpr):
    # as _k_tma, one program a multiprocessor, tile after tile: the next one's loads begin while one is stored
    kt = tl.cdiv(K, BK)
    for t in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        first = (t // (GM * nn)) * GM
        gsz = tl.minimum(nm - first, GM)
        m0 = (first + (t % (GM * nn)) % gsz) * BM
        n0 = ((t % (GM * nn)) // gsz) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(kt):
            x = ad.load([m0, k * BK])
            y = bd.load([n0, k * BK])
            acc = tl.dot(x, y.T, acc)
        h = acc.reshape(BM, 2, BN // 2).permute(0, 2, 1)
        c0, c1 = h.split()
        if BIAS:
            r0 = n0 + tl.arange(0, BN // 2)
            r1 = r0 + BN // 2
            c0 = c0 + tl.load(s_ptr + r0 * ss, mask=r0 < N, other=0).to(tl.float32)[None, :]
            c1 = c1 + tl.load(s_ptr + r1 * ss, mask=r1 < N, other=0).to(tl.float32)[None, :]
        cd.store([m0, n0], c0.to(cd.dtype))
        cd.store([m0, n0 + BN // 2], c1.to(cd.dtype))


@triton.jit
def _k_fin(w_ptr, s_ptr, c_ptr, MN, N, P, ss, BE: tl.constexpr, BIAS: tl.constexpr, CX: tl.constexpr,
           LB: tl.constexpr):
    # adds the pieces of k up; CX: real and imaginary parts follow each other in all but w
    e = tl.program_id(0).to(tl.int64) * BE + tl.arange(0, BE)
    m = e < MN
    mn = tl.cast(MN, tl.int64)
    n = e % N
    acc = tl.zeros([BE], dtype=w_ptr.dtype.element_ty)
    if CX:
        im = tl.zeros([BE], dtype=w_ptr.dtype.element_ty)
        wp = w_ptr + 2 * e
        for p in range(0, P):
            acc += tl.load(wp, mask=m, other=0)
            im += tl.load(wp + 1, mask=m, other=0)
            wp += 2 * mn
        if BIAS:
            acc += tl.load(s_ptr + n * ss, mask=m, other=0).to(tl.float64)
            im += tl.load(s_ptr + n * ss + 1, mask=m, other=0).to(tl.float64)
        tl.store(c_ptr + 2 * e, acc.to(c_ptr.dtype.element_ty), mask=m)
        tl.store(c_ptr + 2 * e + 1, im.to(c_ptr.dtype.element_ty), mask=m)
    else:
        wp = w_ptr + e
        for p in range(0, P):
            acc += tl.load(wp, mask=m, other=0)
            wp += mn
        if BIAS:
            s = tl.load(s_ptr + n * ss, mask=m, other=0)
            if w_ptr.dtype.element_ty == tl.float64:
                acc += s.to(tl.float64)
            else:
                acc += _up(s, LB)
        _st(c_ptr + e, acc, m, LB)


@triton.jit
def _k_64(a_ptr, b_ptr, s_ptr, c_ptr, w_ptr, M, N, K, KC, npm, npn, sam, sak, sbn, sbk, ss,
          BM: tl.constexpr, BN: tl.constexpr, SPLIT: tl.constexpr, BIAS: tl.constexpr, CX: tl.constexpr):
    # float64, and complex numbers as pairs, summed in float64
    pid = tl.program_id(0)
    if SPLIT:
        sp = (pid // (npm * npn)).to(tl.int64)
        pid = pid % (npm * npn)
        k0 = sp * KC
        kl = tl.minimum(K - k0, KC).to(tl.int32)
    else:
        kl = K
    pm = pid // npn
    rm = pm.to(tl.int64) * BM + tl.arange(0, BM)
    rn = (pid - pm * npn).to(tl.int64) * BN + tl.arange(0, BN)
    mm = rm < M
    mn = rn < N
    ap = a_ptr + rm * sam
    bp = b_ptr + rn * sbn
    if SPLIT:
        ap += k0 * sak
        bp += k0 * sbk
    re = tl.zeros([BM, BN], dtype=tl.float64)
    im = tl.zeros([BM, BN], dtype=tl.float64)
    for k in range(0, kl):
        a = tl.load(ap, mask=mm, other=0).to(tl.float64)[:, None]
        b = tl.load(bp, mask=mn, other=0).to(tl.float64)[None, :]
        re += a * b
        if CX:
            ai = tl.load(ap + 1, mask=mm, other=0).to(tl.float64)[:, None]
            bi = tl.load(bp + 1, mask=mn, other=0).to(tl.float64)[None, :]
            re -= ai * bi
            im += a * bi + ai * b
        ap += sak
        bp += sbk
    m = mm[:, None] & mn[None, :]
    if SPLIT:
        o = ((sp * M + rm) * N)[:, None] + rn[None, :]
        if CX:
            tl.store(w_ptr + 2 * o, re, mask=m)
            tl.store(w_ptr + 2 * o + 1, im, mask=m)
        else:
            tl.store(w_ptr + o, re, mask=m)
    else:
        if BIAS:
            re += tl.load(s_ptr + rn * ss, mask=mn, other=0).to(tl.float64)[None, :]
            if CX:
                im += tl.load(s_ptr + rn * ss + 1, mask=mn, other=0).to(tl.float64)[None, :]
        o = (rm * N)[:, None] + rn[None, :]
        if CX:
            tl.store(c_ptr + 2 * o, re.to(c_ptr.dtype.element_ty), mask=m)
            tl.store(c_ptr + 2 * o + 1, im.to(c_ptr.dtype.element_ty), mask=m)
        else:
            tl.store(c_ptr + o, re.to(c_ptr.dtype.element_ty), mask=m)


def _np2(n):
    return 1 << max(0, int(n) - 1).bit_length()


# where the persistent kernel does not compile: not tried again
_NO_PERS = [False]


def _tma(a, b, c, s, M, N, K, ss, BIAS, BN):
    # large products by tensor descriptors; False where that is not possible
    if TensorDescriptor is None or max(M, N, K) >= 2 ** 30:
        return False
    for t in (a, b):
        if t.stride(1) != 1 or t.stride(0) % 8 or t.stride(0) < K or t.stride(0) >= 2 ** 31 or t.data_ptr() % 16:
            return False
    BM, BK = 128, 64
    npm, npn = -(-M // BM), -(-N // BN)
    tiles = npm * npn
    try:
        ad = TensorDescriptor(a, [M, K], [a.stride(0), 1], [BM, BK])
        bd = TensorDescriptor(b, [N, K], [b.stride(0), 1], [BN, BK])
    except Exception:
        return False
    if BN == 256 and tiles >= 264 and N % 8 == 0 and c.data_ptr() % 16 == 0 and not _NO_PERS[0]:
        try:
            cd = TensorDescriptor(c, [M, N], [N, 1], [BM, BN // 2])
            _k_pers[(132,)](ad, bd, cd, s, N, K, npm, npn, tiles, ss, BM=BM, BN=BN, BK=BK, GM=8, BIAS=BIAS,
                            num_warps=8, num_stages=4)
            return True
        except Exception:
            _NO_PERS[0] = True
    try:
        _k_tma[(tiles,)](ad, bd, s, c, M, N, K, npm, npn, ss, BM=BM, BN=BN, BK=BK, GM=8, BIAS=BIAS,
                         num_warps=8, num_stages=4 if BN == 256 else 3)
    except Exception:
        return False
    return True


def linear(input, weight, bias=None):
    dt = input.dtype
    vec = weight.dim() == 1
    K = weight.shape[-1]
    N = 1 if vec else weight.shape[0]
    lead = list(input.shape[:-1])
    M = 1
    for n in lead:
        M *= n
    out = torch.empty(lead if vec else lead + [N], dtype=dt, device=input.device)
    if out.numel() == 0:
        return out
    if dt.is_complex:
        input, weight = input.resolve_conj(), weight.resolve_conj()
        bias = bias if bias is None else bias.resolve_conj()
    a = input.reshape(M, K)
    sam, sak = a.stride()
    sbk = weight.stride(-1)
    sbn = 0 if vec else weight.stride(0)
    ss = 0
    if bias is not None:
        ss = bias.stride(0) if bias.dim() == 1 and bias.shape[0] == N else 0
    b, s, c = weight, bias, out
    BIAS = bias is not None
    if dt == torch.float64 or dt.is_complex:
        CX = dt.is_complex
        if CX:
            a, b, c = torch.view_as_real(a), torch.view_as_real(b), torch.view_as_real(c)
            s = torch.view_as_real(s) if BIAS else s
            sam, sak, sbn, sbk, ss = 2 * sam, 2 * sak, 2 * sbn, 2 * sbk, 2 * ss
        BM, BN = min(32, _np2(M)), min(64, _np2(N))
        npm, npn = -(-M // BM), -(-N // BN)
        tiles = npm * npn
        P = 1
        if tiles < 264 and K >= 1024:
            P = min(-(-K // 512), -(-528 // tiles))
        if K > 2 ** 17:
            P = max(P, -(-K // 2 ** 16))
        KC = -(-K // P) if P > 1 else K
        P = -(-K // KC) if P > 1 else 1
        w = torch.empty(P * M * N * (2 if CX else 1), dtype=torch.float64, device=out.device) if P > 1 else c
        s = s if BIAS else c
        _k_64[(tiles * P,)](a, b, s, c, w, M, N, K, KC, npm, npn, sam, sak, sbn, sbk, ss,
                            BM=BM, BN=BN, SPLIT=P > 1, BIAS=BIAS, CX=CX, num_warps=4)
        if P > 1:
            _k_fin[(-(-M * N // 256),)](w, s, c, M * N, N, P, ss, BE=256, BIAS=BIAS, CX=CX, LB=False, num_warps=4)
        return out
    cpu = out.device.type == "cpu"
    if dt == torch.float32:
        BK, stages = 16, 3
        if M % 64 == 0 and N % 128 == 0 and K % 16 == 0 and M * N * K >= 2 ** 24 and M * N >= 64 * 128 * 66 and not vec and K <= 2 ** 20:
            # tensor cores; 128 registers: two programs a multiprocessor
            npm, npn = M // 64, N // 128
            _k_f64[(npm * npn,)](a, b, s if BIAS else c, c, N, K, npm, npn, sam, sak, sbk, sbn, ss, 0, 0, 0,
                                 BATCH=False, BIAS=BIAS, BM=64, BN=128, BK=16, GM=8, num_warps=8, num_stages=3,
                                 **({} if cpu else {"maxnreg": 128}))
            return out
        if M >= 128 and N >= 128 and (-(-M // 128)) * (-(-N // 128)) >= 100:
            BM, BN, warps = 128, 128, 8
        elif M <= 16:
            BM, BN, BK, warps = 16, 64, 32, 4
        else:
            BM, BN, warps = 64, 64, 4
    else:
        BK, stages = 64, 4
        if M <= 16:
            BM, BN, warps, stages = 16, 64, 4, 5
            if N <= 25600:
                BN = 32
            elif K % 128 == 0 and K >= 1024:
                # longer pieces of the weight's rows at a time, as much shared memory: all programs run at once
                BK, stages = 128, 3
        elif M <= 32:
            BM, BN, warps, stages = 32, 64, 4, 5
        elif M <= 64:
            BM, BN, warps = 64, 64, 4
        elif (-(-M // 128)) * (-(-N // 256)) >= 132:
            BM, BN, warps = 128, 256, 8
        elif (-(-M // 128)) * (-(-N // 128)) >= 100:
            BM, BN, warps = 128, 128, 8
        else:
            BM, BN, warps = 64, 64, 4
        if N <= 128 and M > 64:
            BN = min(BN, max(16, _np2(N)))
    if K <= 32 and BK > 32:
        BK = max(16, _np2(K))
    npm, npn = -(-M // BM), -(-N // BN)
    tiles = npm * npn
    s = s if BIAS else c
    if BM == 128 and dt != torch.float32 and K >= 512 and not cpu and not vec and _tma(a, b, c, s, M, N, K, ss, BIAS, BN):
        return out
    P, KC = 1, K
    if tiles < 66 and K >= 4096:
        P = min(-(-K // 1024), -(-264 // tiles))
    if K > 2 ** 20:
        # no program is to work for seconds
        P = max(P, -(-K // 2 ** 19))
    if P > 1:
        KC = -(-(-(-K // P)) // BK) * BK
        P = -(-K // KC)
    w = torch.empty(P * M * N, dtype=torch.float32, device=out.device) if P > 1 else c
    LB = cpu and dt == torch.bfloat16
    _k_mm[(tiles * P,)](a, b, s, c, w, M, N, K, KC, npm, npn, sam, sak, sbn, sbk, ss,
                        BM=BM, BN=BN, BK=BK, GM=8, EVEN=K % BK == 0, EVM=M % BM == 0, EVN=N % BN == 0,
                        SPLIT=P > 1, BIAS=BIAS, UP=cpu and dt != torch.float32, LB=LB,
                        num_warps=warps, num_stages=stages)
    if P > 1:
        _k_fin[(-(-M * N // 256),)](w, s, c, M * N, N, P, ss, BE=256, BIAS=BIAS, CX=False, LB=LB, num_warps=4)
    return out

