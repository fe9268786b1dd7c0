import torch
import triton
import triton.language as tl

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except Exception:
    TensorDescriptor = None


@triton.jit
def _mm(a, b, o, w, M, N, K, KC, nm, nn, am, ak, bk, bn, EVK: tl.constexpr, EVMN: tl.constexpr, SPLIT: tl.constexpr,
        F32: tl.constexpr, F64: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr):
    # sizes, strides and offsets may pass 2**31 - 1, the numbers of tiles do not
    pid = tl.program_id(0)
    rk = tl.arange(0, BK)
    if SPLIT:
        sp = (pid // (nm * nn)).to(tl.int64)
        pid = pid % (nm * nn)
        k0 = sp * KC
        kl = tl.minimum(K - k0, KC).to(tl.int32)
        rkk = k0 + rk
    else:
        kl = K
        rkk = rk.to(tl.int64)
    per = GM * nn
    grp = pid // per
    first = grp * GM
    gsz = tl.minimum(nm - first, GM)
    pm = first + (pid % per) % gsz
    pn = (pid % per) // gsz
    rm = pm.to(tl.int64) * BM + tl.arange(0, BM)
    rn = pn.to(tl.int64) * BN + tl.arange(0, BN)
    pa = a + rm[:, None] * am + rkk[None, :] * ak
    pb = b + rkk[:, None] * bk + rn[None, :] * bn
    astep = tl.cast(ak, tl.int64) * BK
    bstep = tl.cast(bk, tl.int64) * BK
    mm_ = (rm < M)[:, None]
    mn_ = (rn < N)[None, :]
    acc = tl.zeros((BM, BN), tl.float64 if F64 else tl.float32)
    for k in range(0, tl.cdiv(kl, BK)):
        if EVMN and EVK:
            x = tl.load(pa)
            y = tl.load(pb)
        else:
            mk = rk < kl - k * BK
            x = tl.load(pa, mask=mm_ & mk[None, :], other=0.0)
            y = tl.load(pb, mask=mk[:, None] & mn_, other=0.0)
        if F64:
            # float32 as such has no tensor cores; their float64 is as fast as float32 elsewhere
            acc = tl.dot(x.to(tl.float64), y.to(tl.float64), acc, input_precision="ieee", out_dtype=tl.float64)
        elif F32:
            acc = tl.dot(x, y, acc, input_precision="ieee")
        else:
            acc = tl.dot(x, y, acc)
        pa += astep
        pb += bstep
    if F64 and not SPLIT:
        # whole tiles
        tl.store(o + (rm * N)[:, None] + rn[None, :], acc.to(o.dtype.element_ty))
    elif SPLIT:
        tl.store(w + ((sp * M + rm) * N)[:, None] + rn[None, :], acc.to(tl.float32), mask=mm_ & mn_)
    else:
        tl.store(o + (rm * N)[:, None] + rn[None, :], acc.to(o.dtype.element_ty), mask=mm_ & mn_)


@triton.jit
def _sum(w, o, MN, P, BE: tl.constexpr):
    # adds the pieces of k up
    e = tl.program_id(0).to(tl.int64) * BE + tl.arange(0, BE)
    m = e < MN
    step = tl.cast(MN, tl.int64)
    acc = tl.zeros((BE,), tl.float32)
    wp = w + e
    for p in range(0, P):
        acc += tl.load(wp, mask=m, other=0.0)
        wp += step
    tl.store(o + e, acc.to(o.dtype.element_ty), mask=m)


@triton.jit
def _mm_tma(ad, bd, o, M, N, K, nm, nn, BT: tl.constexpr,
            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr):
    # what is outside of the matrices reads as 0
    pid = tl.program_id(0)
    per = GM * nn
    grp = pid // per
    first = grp * GM
    gsz = tl.minimum(nm - first, GM)
    pm = first + (pid % per) % gsz
    pn = (pid % per) // gsz
    om = pm * BM
    on = pn * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = ad.load([om, k * BK])
        if BT:
            y = bd.load([on, k * BK])
            acc = tl.dot(x, y.T, acc)
        else:
            y = bd.load([k * BK, on])
            acc = tl.dot(x, y, acc)
    rm = om.to(tl.int64) + tl.arange(0, BM)
    rn = on.to(tl.int64) + tl.arange(0, BN)
    tl.store(o + (rm * N)[:, None] + rn[None, :], acc.to(o.dtype.element_ty),
             mask=(rm < M)[:, None] & (rn < N)[None, :])


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
def _mm_wave(ad, bd, cd, K, nm, nn, BT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
             GM: tl.constexpr):
    # as _mm_tma, a tile a multiprocessor; stored by descriptor, in two halves
    pid = tl.program_id(0)
    per = GM * nn
    first = (pid // per) * GM
    gsz = tl.minimum(nm - first, GM)
    m0 = (first + (pid % per) % gsz) * BM
    n0 = ((pid % per) // gsz) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = ad.load([m0, k * BK])
        if BT:
            y = bd.load([n0, k * BK]).T
        else:
            y = bd.load([k * BK, n0])
        acc = tl.dot(x, y, acc)
    h = acc.reshape(BM, 2, BN // 2).permute(0, 2, 1)
    c0, c1 = h.split()
    cd.store([m0, n0], c0.to(cd.dtype))
    cd.store([m0, n0 + BN // 2], c1.to(cd.dtype))


def _rows_ok(t):
    # row-major with aligned rows, none of which overlaps another
    s = t.stride(0)
    return t.stride(1) == 1 and s % 8 == 0 and t.shape[1] <= s < 2 ** 31 and t.data_ptr() % 16 == 0


def _tma(a, b, out, M, N, K, BM, BN, BK, warps, stages):
    # large products by tensor descriptors; False where that is not possible
    if TensorDescriptor is None or max(M, N, K) >= 2 ** 30 or not _rows_ok(a):
        return False
    if _rows_ok(b.t()):
        bt, t, block = True, b.t(), [BN, BK]
    elif _rows_ok(b):
        bt, t, block = False, b, [BK, BN]
    else:
        return False
    nm, nn = triton.cdiv(M, BM), triton.cdiv(N, BN)
    try:
        ad = TensorDescriptor(a, [M, K], [a.stride(0), 1], [BM, BK])
        bd = TensorDescriptor(t, [int(t.shape[0]), int(t.shape[1])], [t.stride(0), 1], block)
        _mm_tma[(nm * nn,)](ad, bd, out, M, N, K, nm, nn, BT=bt, BM=BM, BN=BN, BK=BK, GM=8,
                            num_warps=warps, num_stages=stages)
    except Exception:
        return False
    return True


def _desc(t, block):
    # one matrix as a batch of one
    R, C = int(t.shape[0]), int(t.shape[1])
    s = int(t.stride(0))
    return TensorDescriptor(t, [1, R, C], [R * s, s, 1], [1] + block)


def _persistent(a, b, out, M, N, K):
    # large products, one program a multiprocessor; False where that is not possible
    BM, BN, BK = 128, 256, 64
    if TensorDescriptor is None or max(M, N, K) >= 2 ** 30 or N % 8 != 0 or not _rows_ok(a):
        return False
    nm, nn = triton.cdiv(M, BM), triton.cdiv(N, BN)
    tiles = nm * nn
    if not (110 <= tiles <= 132 or 264 <= tiles < 2 ** 30):
        return False
    if _rows_ok(b.t()):
        bt = True
    elif _rows_ok(b):
        bt = False
    else:
        return False
    if M * a.stride(0) >= 2 ** 38 or max(N, K) * max(b.stride()) >= 2 ** 38:
        return False
    try:
        if tiles <= 132:
            t = b.t() if bt else b
            _mm_wave[(tiles,)](TensorDescriptor(a, [M, K], [a.stride(0), 1], [BM, BK]),
                               TensorDescriptor(t, [int(t.shape[0]), int(t.shape[1])], [t.stride(0), 1],
                                                [BN, BK] if bt else [BK, BN]),
                               TensorDescriptor(out, [M, N], [N, 1], [BM, BN // 2]),
                               K, nm, nn, BT=bt, BM=BM, BN=BN, BK=BK, GM=8, num_warps=8, num_stages=4)
            return True
        bd = _desc(b.t(), [BN, BK]) if bt else _desc(b, [BK, BN])
        _gemm_tma[(min(tiles, 132),)](_desc(a, [BM, BK]), bd, _desc(out, [BM, BN // 2]), nm, nn, tiles, K,
                                      AT=False, BT=bt, BM=BM, BN=BN, BK=BK, GM=8, SUB=True,
                                      num_warps=8, num_stages=4)
    except Exception:
        return False
    return True


def mm(self, mat2):
    M, K = int(self.shape[0]), int(self.shape[1])
    N = int(mat2.shape[1])
    out = torch.empty((M, N), dtype=self.dtype, device=self.device)
    if M == 0 or N == 0:
        return out
    f32 = self.dtype == torch.float32
    f64 = False
    more = {}
    if f32:
        if M % 64 == 0 and N % 128 == 0 and K % 16 == 0 and M * N * K >= 2 ** 24 and M * N >= 64 * 128 * 66:
            # tensor cores; 128 registers: two programs a multiprocessor
            f64 = True
            BM, BN, BK, warps, stages = 64, 128, 16, 8, 3
            more = {"maxnreg": 128}
        elif M * N >= 128 * 128 * 132 and min(M, N) > 64:
            BM, BN, BK, warps, stages = 128, 128, 16, 8, 3
        elif M * N >= 64 * 64 * 64 and min(M, N) > 32:
            BM, BN, BK, warps, stages = 64, 64, 16, 4, 3
        else:
            BM, BN, BK, warps, stages = 32, 32, 32, 4, 2
    else:
        if M * N >= 128 * 256 * 264 and min(M, N) > 64:
            BM, BN, BK, warps, stages = 128, 256, 64, 8, 4
        elif M * N >= 128 * 128 * 100 and min(M, N) > 64:
            BM, BN, BK, warps, stages = 128, 128, 64, 4, 3
        elif M * N >= 64 * 64 * 32 and min(M, N) > 32:
            BM, BN, BK, warps, stages = 64, 64, 64, 4, 4
        elif M > 16 or N > 16:
            BM, BN, BK, warps, stages = 32, 32, 64, 4, 3
        elif 128 < K <= 256:
            BM, BN, BK, warps, stages = 16, 16, 256, 4, 1
        else:
            BM, BN, BK, warps, stages = 16, 16, 128, 2, 2
    cuda = out.device.type == "cuda"
    if BM == 128 and not f32 and K >= 512 and cuda:
        if _persistent(self, mat2, out, M, N, K):
            return out
        if _tma(self, mat2, out, M, N, K, BM, BN, BK, warps, stages):
            return out
    nm, nn = triton.cdiv(M, BM), triton.cdiv(N, BN)
    tiles = nm * nn
    P, KC = 1, K
    if tiles < 66 and K >= 4096:
        P = min(triton.cdiv(K, 1024), triton.cdiv(264, tiles))
    if K > 2 ** 20:
        # no program is to work for seconds
        P = max(P, triton.cdiv(K, 2 ** 19))
    if P > 1:
        KC = triton.cdiv(triton.cdiv(K, P), BK) * BK
        P = triton.cdiv(K, KC)
    even = K % BK == 0 and M % BM == 0 and N % BN == 0
    w = torch.empty((P * M * N,), dtype=torch.float32, device=out.device) if P > 1 else out
    _mm[(tiles * P,)](self, mat2, out, w, M, N, K, KC, nm, nn,
                      self.stride(0), self.stride(1), mat2.stride(0), mat2.stride(1),
                      EVK=K % BK == 0, EVMN=M % BM == 0 and N % BN == 0, SPLIT=P > 1, F32=f32, F64=f64,
                      BM=BM, BN=BN, BK=BK, GM=8, num_warps=warps, num_stages=stages, **(more if cuda and even else {}))
    if P > 1:
        _sum[(triton.cdiv(M * N, 256),)](w, out, M * N, P, BE=256, num_warps=4)
    return out

