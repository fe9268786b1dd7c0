"""cublasStrsm_v2: op(A) X = alpha B or X op(A) = alpha B with many right-hand sides, in place.

Side 'R' is side 'L' of the transposed equation: M Z = alpha R, where M is op(A) or its transpose and Z is X or its
transpose. The diagonal blocks of T rows of M are inverted in float64. Up to NB rows are solved by one kernel, in which a
program owns some right-hand sides and goes through the blocks in turn; longer systems are halved: solve one half, take
its product off the other, solve that. Elements outside the triangle are not read.

With a diagonal that is read, blocks of 128 rows are inverted whole, in float64 too: inverted blocks of 16, put together to
32, 64 and 128. A panel has few steps then. Unit triangles of whole numbers keep the small blocks, whose inverses stay small.
"""
import torch
import triton
import triton.language as tl

@triton.jit
def _tile(t, tm, tn):
    """Tile number t as (row of tiles, column of tiles), in bands of 8 columns, so that neighbours share L2."""
    width = 8 * tm
    first = (t // width) * 8
    size = tl.minimum(tn - first, 8)
    r = t % width
    return r // size, first + r % size


@triton.jit(do_not_specialize=["order", "lda", "unit"])
def _invert(A, V, order, lda, unit, AT: tl.constexpr, UPPER: tl.constexpr, T: tl.constexpr, W: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    la = lda.to(tl.int64)
    rt = tl.arange(0, T)
    row = t * T + rt
    acc = tl.where(rt[:, None] == rt[None, :], 1.0, 0.0).to(tl.float64)
    for q in tl.static_range(T):
        if UPPER:
            p = T - 1 - q
            rest = rt < p
        else:
            p = q
            rest = rt > p
        g = t * T + p
        if AT:
            pc = A + row * la + g
        else:
            pc = A + row + g * la
        c = tl.load(pc, mask=rest & (row < order) & (g < order), other=0.0).to(tl.float64)
        d = tl.load(A + g * (la + 1), mask=(unit == 0) & (g < order), other=1.0).to(tl.float64)
        hit = (rt == p)[:, None]
        x = tl.sum(tl.where(hit, acc, 0.0), axis=0) / d
        acc = tl.where(hit, x[None, :], tl.where(rest[:, None], acc - c[:, None] * x[None, :], acc))
    # into the diagonal of a block of W rows
    base = V + t // (W // T) * (W * W) + t % (W // T) * (T * (W + 1))
    tl.store(base + rt[:, None] * W + rt[None, :], acc)


@triton.jit(do_not_specialize=["order", "lda"])
def _double(A, V, order, lda, AT: tl.constexpr, UPPER: tl.constexpr, S: tl.constexpr, W: tl.constexpr, N: tl.constexpr):
    """Puts two inverted blocks of S rows together: the part beside them is - V_r M_rc V_c; N columns a program."""
    la = lda.to(tl.int64)
    pid = tl.program_id(0)
    slices = S // N
    pair = (pid // slices).to(tl.int64)
    part = pid % slices
    pairs = W // (2 * S)
    first = pair % pairs * (2 * S)
    block = pair // pairs
    if UPPER:
        r0 = first
        c0 = first + S
    else:
        r0 = first + S
        c0 = first
    base = V + block * (W * W)
    rs = tl.arange(0, S)
    rn = part * N + tl.arange(0, N)
    g = block * W + r0 + rs
    h = block * W + c0 + rs
    if AT:
        pm = A + g[:, None] * la + h[None, :]
    else:
        pm = A + g[:, None] + h[None, :] * la
    m = tl.load(pm, mask=(g < order)[:, None] & (h < order)[None, :], other=0.0).to(tl.float64)
    vc = tl.load(base + (c0 + rs)[:, None] * W + (c0 + rn)[None, :])
    vr = tl.load(base + (r0 + rs)[:, None] * W + (r0 + rs)[None, :])
    t = tl.dot(m, vc, input_precision="ieee", out_dtype=tl.float64)
    x = tl.dot(vr, t, input_precision="ieee", out_dtype=tl.float64)
    tl.store(base + (r0 + rs)[:, None] * W + (c0 + rn)[None, :], -x)


@triton.jit(do_not_specialize=["order", "rhs", "b0", "b1", "scale", "lda", "ldb"])
def _wide_panel(A, B, V, order, rhs, b0, b1, scale, lda, ldb, AT: tl.constexpr, BT: tl.constexpr, UPPER: tl.constexpr,
                FAST: tl.constexpr, T: tl.constexpr, R: tl.constexpr, K: tl.constexpr):
    """_panel for wide blocks. FAST says that nothing is to be masked and all leading dimensions are multiples of 16."""
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    if FAST:
        la = tl.multiple_of(la, 16)
        lb = tl.multiple_of(lb, 16)
    rt = tl.arange(0, T)
    rk = tl.arange(0, K)
    col = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    cmask = col < rhs
    end = tl.minimum(b1 * T, order)
    for step in range(0, b1 - b0):
        if UPPER:
            t = b1 - 1 - step
            lo = (t + 1) * T
            hi = end
        else:
            t = b0 + step
            lo = b0 * T
            hi = t * T
        row = tl.full((), 1, tl.int64) * t * T + rt
        rmask = row < order
        if BT:
            pb = B + row[:, None] * lb + col[None, :]
        else:
            pb = B + row[:, None] + col[None, :] * lb
        bmask = rmask[:, None] & cmask[None, :]
        if hi > lo:
            # the solved blocks of this panel
            inner = tl.full((), 1, tl.int64) * lo + rk
            if AT:
                pm = A + row[:, None] * la + inner[None, :]
                mstep = la * 0 + K
            else:
                pm = A + row[:, None] + inner[None, :] * la
                mstep = la * K
            if BT:
                pz = B + inner[:, None] * lb + col[None, :]
                zstep = lb * K
            else:
                pz = B + inner[:, None] + col[None, :] * lb
                zstep = lb * 0 + K
            done = tl.zeros((T, R), dtype=tl.float64)
            for l in range(lo, hi, K):
                if FAST:
                    m = tl.load(pm)
                    z = tl.load(pz)
                else:
                    imask = rk < hi - l
                    m = tl.load(pm, mask=rmask[:, None] & imask[None, :], other=0.0)
                    z = tl.load(pz, mask=imask[:, None] & cmask[None, :], other=0.0)
                done = tl.dot(m.to(tl.float64), z.to(tl.float64), done, input_precision="ieee", out_dtype=tl.float64)
                pm += mstep
                pz += zstep
            if FAST:
                tl.store(pb, tl.load(pb) * scale - done.to(tl.float32))
            else:
                tl.store(pb, tl.load(pb, mask=bmask, other=0.0) * scale - done.to(tl.float32), mask=bmask)
            tl.debug_barrier()
            factor = 1.0
        else:
            factor = scale
        # times the inverted diagonal block
        inner = tl.full((), 1, tl.int64) * t * T + rk
        if BT:
            pz = B + inner[:, None] * lb + col[None, :]
            zstep = lb * K
        else:
            pz = B + inner[:, None] + col[None, :] * lb
            zstep = lb * 0 + K
        pv = V + tl.full((), 1, tl.int64) * t * (T * T) + rt[:, None] * T + rk[None, :]
        x = tl.zeros((T, R), dtype=tl.float64)
        for l in range(0, T, K):
            v = tl.load(pv)
            if FAST:
                z = tl.load(pz)
            else:
                z = tl.load(pz, mask=(inner + l < order)[:, None] & cmask[None, :], other=0.0)
            x = tl.dot(v, z.to(tl.float64), x, input_precision="ieee", out_dtype=tl.float64)
            pv += K
            pz += zstep
        tl.debug_barrier()
        x = x.to(tl.float32) * factor
        if FAST:
            tl.store(pb, x)
        else:
            tl.store(pb, x, mask=bmask)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["order", "rhs", "b0", "b1", "scale", "lda", "ldb"])
def _panel(A, B, V, order, rhs, b0, b1, scale, lda, ldb,
           AT: tl.constexpr, BT: tl.constexpr, UPPER: tl.constexpr, T: tl.constexpr, R: tl.constexpr):
    """Solves the blocks b0 ... b1 - 1 of T rows for R right-hand sides."""
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    rt = tl.arange(0, T)
    rk = tl.arange(0, 16)
    col = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    cmask = col < rhs
    end = tl.minimum(b1 * T, order)
    for step in range(0, b1 - b0):
        if UPPER:
            t = b1 - 1 - step
            lo = (t + 1) * T
            hi = end
        else:
            t = b0 + step
            lo = b0 * T
            hi = t * T
        row = t * T + rt.to(tl.int64)
        rmask = row < order
        if BT:
            pb = B + row[:, None] * lb + col[None, :]
        else:
            pb = B + row[:, None] + col[None, :] * lb
        bmask = rmask[:, None] & cmask[None, :]
        # the solved blocks of this panel
        done = tl.zeros((T, R), dtype=tl.float64)
        for l in range(lo, hi, 16):
            inner = l + rk.to(tl.int64)
            imask = inner < hi
            if AT:
                pm = A + row[:, None] * la + inner[None, :]
            else:
                pm = A + row[:, None] + inner[None, :] * la
            if BT:
                pz = B + inner[:, None] * lb + col[None, :]
            else:
                pz = B + inner[:, None] + col[None, :] * lb
            m = tl.load(pm, mask=rmask[:, None] & imask[None, :], other=0.0)
            z = tl.load(pz, mask=imask[:, None] & cmask[None, :], other=0.0)
            done = tl.dot(m.to(tl.float64), z.to(tl.float64), done, input_precision="ieee", out_dtype=tl.float64)
        right = tl.load(pb, mask=bmask, other=0.0) * scale - done.to(tl.float32)
        tl.store(pb, right, mask=bmask)
        tl.debug_barrier()
        # times the inverted diagonal block
        x = tl.zeros((T, R), dtype=tl.float64)
        for l in range(0, T, 16):
            inner = t * T + l + rk.to(tl.int64)
            imask = inner < order
            if BT:
                pz = B + inner[:, None] * lb + col[None, :]
            else:
                pz = B + inner[:, None] + col[None, :] * lb
            v = tl.load(V + t.to(tl.int64) * (T * T) + rt[:, None] * T + (l + rk)[None, :])
            z = tl.load(pz, mask=imask[:, None] & cmask[None, :], other=0.0).to(tl.float64)
            x = tl.dot(v, z, x, input_precision="ieee", out_dtype=tl.float64)
        tl.debug_barrier()
        tl.store(pb, x.to(tl.float32), mask=bmask)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["m", "n", "k", "oa", "ob", "oc", "lda", "ldb", "ldc", "beta", "tm", "tn"])
def _update(A, B, C, m, n, k, oa, ob, oc, lda, ldb, ldc, beta, tm, tn,
            TA: tl.constexpr, TB: tl.constexpr, FAST: tl.constexpr,
            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = beta C - op(A) op(B), column-major, each matrix at an offset; the tiles hold C transposed."""
    im, jn = _tile(tl.program_id(0), tm, tn)
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    lc = ldc.to(tl.int64)
    a0 = oa.to(tl.int64)
    b0 = ob.to(tl.int64)
    c0 = oc.to(tl.int64)
    if FAST:
        la = tl.multiple_of(la, 16)
        lb = tl.multiple_of(lb, 16)
        lc = tl.multiple_of(lc, 16)
        a0 = tl.multiple_of(a0, 16)
        b0 = tl.multiple_of(b0, 16)
        c0 = tl.multiple_of(c0, 16)
    rm = im.to(tl.int64) * BM + tl.arange(0, BM)
    rn = jn.to(tl.int64) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    if TA:
        yp = A + a0 + rk[:, None] + rm[None, :] * la
        ystep = BK
    else:
        yp = A + a0 + rk[:, None] * la + rm[None, :]
        ystep = la * BK
    if TB:
        xp = B + b0 + rn[:, None] + rk[None, :] * lb
        xstep = lb * BK
    else:
        xp = B + b0 + rn[:, None] * lb + rk[None, :]
        xstep = BK
    # in float64: float32 as such has no tensor cores, and their float64 is as fast
    acc = tl.zeros((BN, BM), dtype=tl.float64)
    for l in range(0, k, BK):
        if FAST:
            x = tl.load(xp)
            y = tl.load(yp)
        else:
            left = tl.arange(0, BK) < k - l
            x = tl.load(xp, mask=(rn < n)[:, None] & left[None, :], other=0.0)
            y = tl.load(yp, mask=left[:, None] & (rm < m)[None, :], other=0.0)
        acc = tl.dot(x.to(tl.float64), y.to(tl.float64), acc, input_precision="ieee", out_dtype=tl.float64)
        xp += xstep
        yp += ystep
    acc = acc.to(tl.float32)
    cp = C + c0 + rn[:, None] * lc + rm[None, :]
    if FAST:
        tl.store(cp, tl.load(cp) * beta - acc)
    else:
        mask = (rn < n)[:, None] & (rm < m)[None, :]
        tl.store(cp, tl.load(cp, mask=mask, other=0.0) * beta - acc, mask=mask)


@triton.jit(do_not_specialize=["m", "n", "ldb", "tm"])
def _zero(B, m, n, ldb, tm, BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    pn = pid // tm
    rows = (pid - pn * tm) * BM + tl.arange(0, BM)
    cols = pn * BN + tl.arange(0, BN)
    mask = (cols < n)[:, None] & (rows < m)[None, :]
    tl.store(B + cols[:, None] * ldb + rows[None, :], tl.zeros((BN, BM), dtype=tl.float32), mask=mask)


def cublasStrsm_v2(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
    if m <= 0 or n <= 0:
        return
    if alpha == 0:
        bm = min(1024, triton.next_power_of_2(m))
        bn = 2048 // bm
        tm = triton.cdiv(m, bm)
        _zero[(tm * triton.cdiv(n, bn),)](B, m, n, ldb, tm, BM=bm, BN=bn, num_warps=4)
        return
    right = side == "R"
    order, rhs = (n, m) if right else (m, n)
    at = (trans != "N") != right  # M is stored transposed
    upper = (uplo == "U") != at
    T = 16 if order <= 128 else 32
    per = 256 // T  # blocks that one panel solves
    blocks = triton.cdiv(order, T)
    wide = diag != "U" and order > 128
    if wide:
        T = 128
        blocks = triton.cdiv(order, T)
        V = torch.zeros(blocks * T * T, dtype=torch.float64, device=A.device)
        # a last block of less than 128 rows is filled up with those of the unit matrix
        _invert[(blocks * 8,)](A, V, order, lda, 0, AT=at, UPPER=upper, T=16, W=T, num_warps=1)
        _double[(blocks * 4,)](A, V, order, lda, AT=at, UPPER=upper, S=16, W=T, N=16, num_warps=1)
        _double[(blocks * 4,)](A, V, order, lda, AT=at, UPPER=upper, S=32, W=T, N=16, num_warps=2)
        _double[(blocks * 4,)](A, V, order, lda, AT=at, UPPER=upper, S=64, W=T, N=16, num_warps=4)
        R = 16 if rhs < 3072 else 32 if rhs < 6144 else 64
        per = 2 if R == 64 else 4
        whole = order % T == 0 and rhs % R == 0 and lda % 16 == 0 and ldb % 16 == 0
    else:
        V = torch.empty(blocks * T * T, dtype=torch.float64, device=A.device)
        _invert[(blocks,)](A, V, order, lda, int(diag == "U"), AT=at, UPPER=upper, T=T, W=T, num_warps=4)
        R = 16 if rhs <= 2112 else 32

    def update(p0, p1, q0, q1, beta):
        """Rows p0 ... p1 of Z give their share to rows q0 ... q1."""
        k, w = p1 - p0, q1 - q0
        oa = q0 * lda + p0 if at else q0 + p0 * lda  # the block of M, rows q, columns p
        if right:  # B(:, q) -= B(:, p) M^T
            args = (B, A, B, rhs, w, k, p0 * ldb, oa, q0 * ldb, ldb, lda, ldb)
            ta, tb = False, not at
        else:  # B(q, :) -= M B(p, :)
            args = (A, B, B, w, rhs, k, oa, p0, q0, lda, ldb, ldb)
            ta, tb = at, False
        mm, nn = args[3], args[4]
        bm = min(128, max(16, triton.next_power_of_2(mm)))
        bn = min(64, max(16, triton.next_power_of_2(nn)))
        while triton.cdiv(mm, bm) * triton.cdiv(nn, bn) < 120 and max(bm, bn) > 32:
            if bm >= bn:
                bm //= 2
            else:
                bn //= 2
        area = bm * bn
        fast = mm % bm == 0 and nn % bn == 0 and k % 16 == 0 and all(v % 16 == 0 for v in args[6:])
        tm, tn = triton.cdiv(mm, bm), triton.cdiv(nn, bn)
        _update[(tm * tn,)](*args, float(beta), tm, tn, TA=ta, TB=tb, FAST=fast,
                                                              BM=bm, BN=bn, BK=16,
                                                              num_warps=1 if area <= 512 else 2 if area <= 1024 else 4 if area <= 4096 else 8,
                            maxnreg=128 if area > 4096 and fast else None, num_stages=3)

    def solve(b0, b1, scale):
        if b1 - b0 <= per and wide:
            _wide_panel[(triton.cdiv(rhs, R),)](A, B, V, order, rhs, b0, b1, float(scale), lda, ldb, AT=at, BT=right,
                                                UPPER=upper, FAST=whole, T=T, R=R, K=16, num_warps=8, num_stages=3)
            return
        if b1 - b0 <= per:
            _panel[(triton.cdiv(rhs, R),)](A, B, V, order, rhs, b0, b1, float(scale), lda, ldb,
                                           AT=at, BT=right, UPPER=upper, T=T, R=R, num_warps=4, num_stages=2)
            return
        mid = b0 + triton.cdiv(triton.cdiv(b1 - b0, per), 2) * per
        r0, r1, r2 = b0 * T, mid * T, min(b1 * T, order)
        if upper:
            solve(mid, b1, scale)
            update(r1, r2, r0, r1, scale)
            solve(b0, mid, 1.0)
        else:
            solve(b0, mid, scale)
            update(r0, r1, r1, r2, scale)
            solve(mid, b1, 1.0)

    solve(0, blocks, alpha)
