import torch
import triton
import triton.language as tl


@triton.jit
def _transpose_kernel(x_ptr, o_ptr, xoff, ooff, NO, NI, no, ni,
                      xs_o, xs_i, os_o, os_i,
                      b1, b2, b3,
                      xb0, xb1, xb2, xb3, ob0, ob1, ob2, ob3,
                      BO: tl.constexpr, BI: tl.constexpr):
    # dimension o is the fast one of the output, dimension i the fast one of the input
    pid = tl.program_id(0).to(tl.int64)
    per = tl.cast(no, tl.int64) * ni
    b = pid // per
    t = pid % per
    po = t % no
    pi = t // no
    i3 = (b % b3).to(tl.int64)
    b = b // b3
    i2 = (b % b2).to(tl.int64)
    b = b // b2
    i1 = (b % b1).to(tl.int64)
    i0 = (b // b1).to(tl.int64)
    x_ptr += i0 * xb0 + i1 * xb1 + i2 * xb2 + i3 * xb3 + xoff
    o_ptr += i0 * ob0 + i1 * ob1 + i2 * ob2 + i3 * ob3 + ooff
    ro = po.to(tl.int64) * BO + tl.arange(0, BO)
    ri = pi.to(tl.int64) * BI + tl.arange(0, BI)
    mo = ro < NO
    mi = ri < NI
    v = tl.load(x_ptr + ro[:, None] * xs_o + ri[None, :] * xs_i,
                mask=mo[:, None] & mi[None, :])
    vt = tl.trans(v)
    tl.store(o_ptr + ri[:, None] * os_i + ro[None, :] * os_o, vt,
             mask=mi[:, None] & mo[None, :])


@triton.jit
def _copy_kernel(x_ptr, o_ptr, xoff, ooff, NR, NC, nr, nc,
                 xs_r, xs_c, os_r, os_c,
                 b1, b2, b3,
                 xb0, xb1, xb2, xb3, ob0, ob1, ob2, ob3,
                 BR: tl.constexpr, BC: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    per = tl.cast(nr, tl.int64) * nc
    b = pid // per
    t = pid % per
    pc = t % nc
    pr = t // nc
    i3 = (b % b3).to(tl.int64)
    b = b // b3
    i2 = (b % b2).to(tl.int64)
    b = b // b2
    i1 = (b % b1).to(tl.int64)
    i0 = (b // b1).to(tl.int64)
    x_ptr += i0 * xb0 + i1 * xb1 + i2 * xb2 + i3 * xb3 + xoff
    o_ptr += i0 * ob0 + i1 * ob1 + i2 * ob2 + i3 * ob3 + ooff
    rr = pr.to(tl.int64) * BR + tl.arange(0, BR)
    rc = pc.to(tl.int64) * BC + tl.arange(0, BC)
    m = (rr < NR)[:, None] & (rc < NC)[None, :]
    v = tl.load(x_ptr + rr[:, None] * xs_r + rc[None, :] * xs_c, mask=m)
    tl.store(o_ptr + rr[:, None] * os_r + rc[None, :] * os_c, v, mask=m)


@triton.jit
def _flip_kernel(x_ptr, o_ptr, U, R, C, BQ: tl.constexpr, REV: tl.constexpr, BIG: tl.constexpr,
                 R_: tl.constexpr, C_: tl.constexpr):
    # units of 16 bytes: blocks of R rows, whose order turns round, of C units each;
    # REV: the units of a row turn round instead, elements of REV bytes and all
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    q = pid * BQ + tl.arange(0, BQ)
    m = (q < U)[:, None]
    if C_ > 0:
        row = q // C_
    else:
        row = q // C
    if REV > 0:
        if C_ > 0:
            s = row * (2 * C_) + (C_ - 1) - q
        else:
            s = row * (2 * C) + (C - 1) - q
    else:
        if C_ > 0:
            s = q + (R_ - 1 - 2 * (row % R_)) * C_
        else:
            s = q + (R - 1 - 2 * (row % R)) * C
    e = tl.arange(0, 2)[None, :]
    d = o_ptr + q[:, None] * 2 + e
    if REV > 0:
        v = tl.load(x_ptr + s[:, None] * 2 + (1 - e), mask=m, other=0)
        if REV < 8:
            v = v.to(tl.uint64, bitcast=True)
            v = (v >> 32) | (v << 32)
            if REV < 4:
                v = ((v >> 16) & 0x0000FFFF0000FFFF) | ((v & 0x0000FFFF0000FFFF) << 16)
            if REV < 2:
                v = ((v >> 8) & 0x00FF00FF00FF00FF) | ((v & 0x00FF00FF00FF00FF) << 8)
            v = v.to(tl.int64, bitcast=True)
        tl.store(d, v, mask=m)
    else:
        v = tl.load(x_ptr + s[:, None] * 2 + e, mask=m, other=0)
        tl.store(d, v, mask=m)


_INT = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _pow2(n):
    return 1 << max(0, (int(n) - 1).bit_length())


def _plan(x, shape, ostr, k, d0, d1):
    """dims as [size, input stride, output stride] in the output's order, input offset"""
    xs = list(x.stride())
    off = 0
    ins = list(xs)
    m, n = x.shape[d0], x.shape[d1]
    if k == 1:
        # out[i, j] = x[j, n - 1 - i]
        off = (n - 1) * xs[d1]
        ins[d0] = -xs[d1]
        ins[d1] = xs[d0]
    elif k == 2:
        off = (m - 1) * xs[d0] + (n - 1) * xs[d1]
        ins[d0] = -xs[d0]
        ins[d1] = -xs[d1]
    elif k == 3:
        # out[i, j] = x[m - 1 - j, i]
        off = (m - 1) * xs[d0]
        ins[d0] = xs[d1]
        ins[d1] = -xs[d0]
    dims = []
    order = sorted(range(len(shape)), key=lambda i: (-ostr[i], i))
    for i in order:
        s = shape[i]
        if s == 1:
            continue
        if dims and dims[-1][1] == ins[i] * s and dims[-1][2] == ostr[i] * s:
            dims[-1] = [dims[-1][0] * s, ins[i], ostr[i]]
        else:
            dims.append([s, ins[i], ostr[i]])
    return dims, off


def _rot(x, out, k, d0, d1):
    if out.numel() == 0:
        return
    it = _INT[x.element_size()]
    xi = x if x.dtype == it else x.view(it)
    oi = out if out.dtype == it else out.view(it)
    dims, xoff = _plan(xi, list(out.shape), list(out.stride()), k, d0, d1)
    if len(dims) > 6:
        tmp = torch.empty(out.shape, dtype=oi.dtype, device=out.device)
        xi = xi.contiguous()
        dims, xoff = _plan(xi, list(tmp.shape), list(tmp.stride()), k, d0, d1)
        _go(xi, tmp, dims, xoff)
        oi.copy_(tmp)
        return
    _go(xi, oi, dims, xoff)


def _go(xi, oi, dims, xoff):
    ooff = 0
    es = xi.element_size()
    while len(dims) < 2:
        dims = [[1, 0, 0]] + dims
    idx = [i for i in range(len(dims)) if dims[i][0] > 1] or [len(dims) - 1]
    fo = min(idx, key=lambda i: (abs(dims[i][2]), -i))
    nz = [i for i in idx if dims[i][1] != 0]
    fi = min(nz, key=lambda i: (abs(dims[i][1]), -i)) if nz else fo
    if abs(dims[fi][1]) == abs(dims[fo][1]):
        fi = fo
    if fi != fo:
        # run upwards through the input along its fast dimension
        s, a, b = dims[fi]
        if a < 0:
            xoff += (s - 1) * a
            ooff += (s - 1) * b
            dims[fi] = [s, -a, -b]
        D0, D1 = dims[fo], dims[fi]
        rest = [d for i, d in enumerate(dims) if i not in (fi, fo)]
        BO = min(64, max(16, _pow2(D0[0])))
        BI = min(64, max(16, _pow2(D1[0])))
        kern = _transpose_kernel
        names = dict(BO=BO, BI=BI)
        t0, t1 = triton.cdiv(D0[0], BO), triton.cdiv(D1[0], BI)
    else:
        D1 = dims[fo]
        other = [i for i in range(len(dims)) if i != fo]
        ro = max(other, key=lambda i: (dims[i][0], i))
        D0 = dims[ro]
        rest = [d for i, d in enumerate(dims) if i not in (ro, fo)]
        total = 16384 // es if es >= 4 else 4096
        BC = min(total, max(16, _pow2(D1[0])))
        BR = max(1, min(total // BC, _pow2(D0[0])))
        kern = _copy_kernel
        names = dict(BR=BR, BC=BC)
        t0, t1 = triton.cdiv(D0[0], BR), triton.cdiv(D1[0], BC)
    nb = 1
    for d in rest:
        nb *= d[0]
    rest = [[1, 0, 0]] * (4 - len(rest)) + rest
    kern[(t0 * t1 * nb,)](
        xi, oi, xoff, ooff, D0[0], D1[0], t0, t1, D0[1], D1[1], D0[2], D1[2],
        rest[1][0], rest[2][0], rest[3][0],
        rest[0][1], rest[1][1], rest[2][1], rest[3][1],
        rest[0][2], rest[1][2], rest[2][2], rest[3][2],
        num_warps=4, **names)


def _prep(self, k, dims):
    nd = self.dim()
    d0, d1 = int(dims[0]), int(dims[1])
    if d0 < 0:
        d0 += nd
    if d1 < 0:
        d1 += nd
    k = int(k) % 4
    shape = list(self.shape)
    if k in (1, 3):
        shape[d0], shape[d1] = shape[d1], shape[d0]
    x = self
    if x.is_complex() and x.is_conj():
        x = x.resolve_conj()
    if x.is_neg():
        x = x.resolve_neg()
    return x, k, d0, d1, shape


def _flip_fast(x, y, dims, es):
    """x and y dense, of the same strides; dims as of _plan. False where it does not fit"""
    n = x.numel()
    if n * es % 16 or x.storage_offset() * es % 16 or x.data_ptr() % 16 or y.data_ptr() % 16:
        return False
    neg = [i for i, d in enumerate(dims) if d[1] < 0]
    if len(neg) != 1 or len(dims) > 3:
        return False
    i = neg[0]
    if i == len(dims) - 1 and dims[i][2] == 1:
        # the last dimension
        rev, R, C = es, 1, dims[i][0] * es
    else:
        rev, R, C = 0, dims[i][0], dims[i][2] * es
    if C % 16:
        return False
    C //= 16
    U = n * es // 16
    xf = x.as_strided((n,), (1,), x.storage_offset())
    yf = y.as_strided((n,), (1,), y.storage_offset())
    if es != 8:
        xf, yf = xf.view(torch.int64), yf.view(torch.int64)
    BQ = 512 if U > 65536 else 128
    big = 2 * U + 4 * BQ + 4 * C >= 2 ** 31
    known = U >= 1 << 18
    _flip_kernel[(triton.cdiv(U, BQ),)](xf, yf, U, R, C, BQ=BQ, REV=rev, BIG=big,
                                        R_=R if known else 0, C_=C if known else 0, num_warps=4)
    return True


def rot90(self, k=1, dims=(0, 1)):
    x, k, d0, d1, shape = _prep(self, k, dims)
    # the result lies in memory as self does: some dimensions run backwards, and two change places in its strides
    nd = x.dim()
    order = sorted(range(nd), key=lambda i: (-x.stride(i) if x.stride(i) else -(1 << 62), i))
    st = [0] * nd
    run = 1
    for i in order[::-1]:
        st[i] = run
        run *= max(1, x.shape[i])
    y = torch.empty_strided(tuple(x.shape), tuple(st), dtype=self.dtype, device=self.device)
    out = y.transpose(d0, d1) if k in (1, 3) else y
    if out.numel() == 0:
        return out
    it = _INT[x.element_size()]
    xi = x if x.dtype == it else x.view(it)
    yi = y if y.dtype == it else y.view(it)
    oi = yi.transpose(d0, d1) if k in (1, 3) else yi
    ds, xoff = _plan(xi, shape, list(oi.stride()), k, d0, d1)
    if k and all(x.stride(i) == st[i] for i in range(nd) if x.shape[i] > 1) \
            and _flip_fast(xi, yi, ds, x.element_size()):
        return out
    _rot(x, out, k, d0, d1)
    return out


def rot90_out(self, k=1, dims=(0, 1), *, out):
    x, k, d0, d1, shape = _prep(self, k, dims)
    _rot(x, out, k, d0, d1)
    return out

