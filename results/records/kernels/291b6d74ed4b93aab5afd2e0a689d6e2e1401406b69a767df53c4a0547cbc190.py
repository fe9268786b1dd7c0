import torch
import triton
import triton.language as tl


@triton.jit
def _off(r, ND: tl.constexpr, n1, n2, n3, n4, s1, s2, s3, s4, sl):
    # offset of position r in ND dimensions; n1 is the innermost size, sl the outermost stride
    t = r
    o = r * 0
    if ND > 1:
        q = t // n1
        o = o + (t - q * n1) * s1
        t = q
    if ND > 2:
        q = t // n2
        o = o + (t - q * n2) * s2
        t = q
    if ND > 3:
        q = t // n3
        o = o + (t - q * n3) * s3
        t = q
    if ND > 4:
        q = t // n4
        o = o + (t - q * n4) * s4
        t = q
    return o + t * sl


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
def _cvt(x, KIND: tl.constexpr, LB: tl.constexpr):
    # 0 bits as they are, 1 to a floating type through float32, 2 to float64,
    # 3 from floating to integer, 4 from integer to integer, 5 to bool,
    # 6 to bool from a complex number, whose parts the kernel has joined
    if KIND == 0:
        y = x
    elif KIND == 1:
        y = _up(x, LB)
    elif KIND == 2:
        if LB:
            y = _up(x, LB).to(tl.float64)
        else:
            y = x.to(tl.float64)
    elif KIND == 3:
        if LB:
            y = _up(x, LB).to(tl.int64)
        else:
            y = x.to(tl.int64)
    elif KIND == 4:
        y = x
    else:
        if LB:
            y = (_up(x, LB) != 0).to(tl.uint8)
        else:
            y = (x != 0).to(tl.uint8)
    return y


@triton.jit
def _out(p, x, m, KIND: tl.constexpr, LB: tl.constexpr, SB: tl.constexpr, CX: tl.constexpr):
    y = _cvt(x, KIND, LB)
    _st(p, y, m, SB)
    if CX:
        tl.store(p + 1, (tl.zeros(y.shape, dtype=tl.int32)).to(p.dtype.element_ty), mask=m)


@triton.jit
def _k_flat(x_ptr, o_ptr, n, BLOCK: tl.constexpr, BIG: tl.constexpr, KIND: tl.constexpr,
            LB: tl.constexpr, SB: tl.constexpr, CX: tl.constexpr):
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0)
    if KIND == 6:
        x = tl.where(x != 0, x, tl.load(x_ptr + 1 + i, mask=m, other=0))
    _out(o_ptr + i, x, m, KIND, LB, SB, CX)


@triton.jit(do_not_specialize=["M", "NB", "n1", "n2", "n3", "n4"])
def _k_gen(x_ptr, o_ptr, M, N, NB, n1, n2, n3, n4, x0, x1, x2, x3, x4, xl, o0, o1, o2, o3, o4, ol,
           BM: tl.constexpr, BN: tl.constexpr, ND: tl.constexpr, BIG: tl.constexpr, KIND: tl.constexpr,
           LB: tl.constexpr, SB: tl.constexpr, CX: tl.constexpr):
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    pm = pid // NB
    r = pm * BM + tl.arange(0, BM)
    c = (pid - pm * NB) * BN + tl.arange(0, BN)
    m = (r < M)[:, None] & (c < N)[None, :]
    xo = _off(r, ND, n1, n2, n3, n4, x1, x2, x3, x4, xl)[:, None] + (c * x0)[None, :]
    oo = _off(r, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)[:, None] + (c * o0)[None, :]
    x = tl.load(x_ptr + xo, mask=m, other=0)
    if KIND == 6:
        x = tl.where(x != 0, x, tl.load(x_ptr + 1 + xo, mask=m, other=0))
    _out(o_ptr + oo, x, m, KIND, LB, SB, CX)


@triton.jit(do_not_specialize=["NP", "NQ", "n1", "n2", "n3", "n4"])
def _k_tr(x_ptr, o_ptr, P, Q, NP, NQ, n1, n2, n3, n4, xp, xq, x1, x2, x3, x4, xl,
          op, oq, o1, o2, o3, o4, ol, BP: tl.constexpr, BQ: tl.constexpr, ND: tl.constexpr,
          BIG: tl.constexpr, KIND: tl.constexpr, LB: tl.constexpr, SB: tl.constexpr, CX: tl.constexpr):
    # tiles whose rows are contiguous in x and whose columns are contiguous in the result
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    tiles = NP * NQ
    bi = pid // tiles
    t = pid - bi * tiles
    ip = t // NQ
    iq = t - ip * NQ
    p = ip * BP + tl.arange(0, BP)
    q = iq * BQ + tl.arange(0, BQ)
    m = (p < P)[:, None] & (q < Q)[None, :]
    xb = _off(bi, ND, n1, n2, n3, n4, x1, x2, x3, x4, xl)
    ob = _off(bi, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)
    xo = (p * xp)[:, None] + (q * xq)[None, :]
    oo = (p * op)[:, None] + (q * oq)[None, :]
    x = tl.load(x_ptr + xb + xo, mask=m, other=0)
    if KIND == 6:
        x = tl.where(x != 0, x, tl.load(x_ptr + 1 + xb + xo, mask=m, other=0))
    _out(o_ptr + ob + oo, x, m, KIND, LB, SB, CX)


def _np2(n):
    return 1 << max(0, int(n) - 1).bit_length()


def _plan(shape, strides):
    # dimensions of size 1 dropped, ordered by the last operand's strides, merged where all operands allow it
    k = len(strides)
    dims = [(int(n), [int(s[i]) for s in strides]) for i, n in enumerate(shape) if n != 1]
    dims.sort(key=lambda d: -d[1][-1])
    res = []
    for n, st in dims:
        if res and all(res[-1][1][j] == st[j] * n for j in range(k)):
            res[-1] = (res[-1][0] * n, st)
        else:
            res.append((n, st))
    return res if res else [(1, [1] * k)]


def _flat(d):
    return len(d) == 1 and all(s == 1 for s in d[0][1])


def _launch(kern, ts, d, args, kw, total=2048, warps=4, big=False):
    # a kernel over tiles of rows (outer dimensions) and columns (the innermost one)
    if len(d) > 6:
        n, st = d[0]
        for i in range(n):
            sub = [t.as_strided((1,), (1,), t.storage_offset() + i * s) for t, s in zip(ts, st)]
            _launch(kern, sub, d[1:], args, kw, total, warps, big)
        return
    k = len(ts)
    N, s0 = d[-1]
    outer = d[:-1][::-1]
    nd = len(outer)
    M = 1
    for n, _ in outer:
        M *= n
    sizes = [n for n, _ in outer[:-1]]
    sizes += [1] * (4 - len(sizes))
    st = []
    for j in range(k):
        mid = [s[j] for _, s in outer[:-1]]
        mid += [0] * (4 - len(mid))
        st += [s0[j]] + mid + [outer[-1][1][j] if nd else 0]
        if sum((n - 1) * s[j] for n, s in d) >= 2 ** 31 - 2 ** 22:
            big = True
    BN = min(_np2(N), 1024)
    if N > 128 and N % BN:
        b = N & -N
        if b >= 128:
            BN = min(b, 1024)
    BM = min(_np2(M), max(1, total // BN))
    NB = -(-N // BN)
    if M * N >= 2 ** 31 - 2 ** 22:
        big = True
    kern[(-(-M // BM) * NB,)](*ts, M, N, NB, *sizes, *st, *args,
                              BM=BM, BN=BN, ND=nd, BIG=big, num_warps=warps, **kw)


_IVT = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _iv(t):
    # the same memory as integers
    return t.view(_IVT[t.element_size()])


def _copy(x, out, pair=False):
    # x and out: real tensors of one shape, out dense; writes x, converted, into out;
    # pair: x are the real parts of complex numbers, the imaginary ones lie behind them
    n = out.numel()
    if n == 0:
        return
    src, dst = x.dtype, out.dtype
    bf = torch.bfloat16
    cpu = out.device.type == "cpu"
    shape = out.shape
    CX = dst.is_complex and not src.is_complex
    if CX:
        # from real numbers: the real parts are strided by 2
        out = torch.view_as_real(out).select(-1, 0)
        dst = out.dtype
    if src == dst and not CX:
        KIND = 0
        x, out = _iv(x), _iv(out)
    else:
        if src == torch.bool:
            x = x.view(torch.uint8)
        if dst == torch.bool:
            KIND = 6 if pair else 5
            out = out.view(torch.uint8)
        elif dst == torch.float64:
            KIND = 2
        elif dst.is_floating_point:
            KIND = 1
        elif src.is_floating_point:
            KIND = 3
        else:
            KIND = 4
    kw = dict(KIND=KIND, LB=cpu and x.dtype == bf, SB=cpu and out.dtype == bf, CX=CX)
    d = _plan(shape, [x.stride(), out.stride()])
    if _flat(d):
        size = min(x.element_size(), out.element_size())
        BLOCK = 1024 if size >= 4 else 2048
        if x.element_size() == out.element_size() == 1:
            BLOCK = 4096
        _k_flat[(-(-n // BLOCK),)](x, out, n, BLOCK=BLOCK, BIG=n >= 2 ** 31 - 2 ** 20, num_warps=4, **kw)
        return
    q = len(d) - 1
    p = -1
    if 2 <= len(d) <= 6 and d[q][1][1] == 1 and d[q][1][0] > 1 and d[q][0] >= 8:
        for i in range(q):
            if d[i][1][0] == 1 and d[i][0] >= 8:
                p = i
    if p >= 0:
        P, (xp, op) = d[p]
        Q, (xq, oq) = d[q]
        rest = [e for i, e in enumerate(d) if i not in (p, q)][::-1]
        nd = len(rest)
        B = 1
        for e, _ in rest:
            B *= e
        sizes = [e for e, _ in rest[:-1]]
        sizes += [1] * (4 - len(sizes))
        st = []
        for j in range(2):
            mid = [s[j] for _, s in rest[:-1]]
            mid += [0] * (4 - len(mid))
            st.append(mid + [rest[-1][1][j] if nd else 0])
        big = n >= 2 ** 31 - 2 ** 24
        for j in range(2):
            if sum((e - 1) * s[j] for e, s in d) >= 2 ** 31 - 2 ** 24:
                big = True
        BP = min(64, _np2(P))
        BQ = min(64, _np2(Q))
        NP, NQ = -(-P // BP), -(-Q // BQ)
        _k_tr[(B * NP * NQ,)](x, out, P, Q, NP, NQ, *sizes, xp, xq, *st[0], op, oq, *st[1],
                              BP=BP, BQ=BQ, ND=nd, BIG=big, num_warps=4, **kw)
    else:
        _launch(_k_gen, [x, out], d, [], kw)


def _fill(x, out):
    # complex numbers are taken apart where they are converted
    if x.dtype.is_complex and x.is_conj():
        x = x.resolve_conj()
    if x.dtype.is_complex and (out.dtype != x.dtype or x.element_size() > 8):
        if out.dtype.is_complex:
            _copy(torch.view_as_real(x), torch.view_as_real(out))
        else:
            _copy(torch.view_as_real(x).select(-1, 0), out, True)
    else:
        _copy(x, out)
    return out


def _mf(f):
    if isinstance(f, str):
        f = getattr(torch, f.split(".")[-1])
    return torch.preserve_format if f is None else f


def _own_format(t):
    # the memory format that a tensor has by its strides: channels_last(_3d) or contiguous_format
    nd = t.dim()
    if nd == 4:
        order, f = (1, 3, 2, 0), torch.channels_last
    elif nd == 5:
        order, f = (1, 4, 3, 2, 0), torch.channels_last_3d
    else:
        return torch.contiguous_format
    size, st = [int(v) for v in t.shape], [int(v) for v in t.stride()]
    if st[1] == 0:
        return torch.contiguous_format
    least = 0
    for d in order:
        if size[d] == 0 or st[d] < least:
            return torch.contiguous_format
        if d == 0 and least == st[1]:
            return torch.contiguous_format
        least = st[d]
        if size[d] > 1:
            least *= size[d]
    return f


def to_dtype(self, dtype, non_blocking=False, copy=False, memory_format=None):
    f = _mf(memory_format)
    if self.dtype == dtype and not copy:
        if f == torch.preserve_format or f == _own_format(self):
            return self
    out = torch.empty_like(self, dtype=dtype, memory_format=f)
    return _fill(self, out)
