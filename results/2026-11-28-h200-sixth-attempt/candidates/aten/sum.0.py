import torch
import triton
import triton.language as tl


@triton.jit
def _row_sum(x_ptr, o_ptr, K, K1, ks0, ks1, R0, R1, TOT, rs0, rs1, PER, S,
             ACC: tl.constexpr, NZ: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    pid = tl.program_id(0)
    pk = pid // S
    ps = pid % S
    k = pk.to(tl.int64) * BM + tl.arange(0, BM)
    mk = k < K
    base = (k // K1) * ks0 + (k % K1) * ks1
    c = tl.arange(0, BC).to(tl.int64)
    acc = tl.zeros((BM, BC), dtype=ACC)
    # R0 and R1 may each be beyond 2**31
    lo = ps.to(tl.int64) * PER
    hi = tl.minimum(lo + PER, tl.cast(R0, tl.int64))
    rs064 = tl.cast(rs0, tl.int64)
    r164 = tl.cast(R1, tl.int64)
    for r in range(lo, hi):
        rb = rs064 * r
        lin = r164 * r
        for cb in range(r164 * 0, r164, BC):
            cc = c + cb
            m = (cc < R1) & (cc + lin < TOT)
            v = tl.load(x_ptr + base[:, None] + (cc * rs1 + rb)[None, :],
                        mask=mk[:, None] & m[None, :], other=0)
            if NZ:
                v = (v != 0)
            acc += v.to(ACC)
    s = tl.sum(acc, axis=1)
    tl.store(o_ptr + k * S + ps, s.to(o_ptr.dtype.element_ty), mask=mk)


@triton.jit
def _col_sum(x_ptr, o_ptr, K0, I, ks0, istr, R, R1, rs0, rs1, PER, nib,
             ACC: tl.constexpr, NZ: tl.constexpr, BR: tl.constexpr, BI: tl.constexpr):
    pid = tl.program_id(0)
    ib = pid % nib
    t = pid // nib
    k0 = (t % K0).to(tl.int64)
    ps = (t // K0).to(tl.int64)
    i = ib.to(tl.int64) * BI + tl.arange(0, BI)
    mi = i < I
    x_ptr += k0 * ks0
    acc = tl.zeros((BR, BI), dtype=ACC)
    lo = ps * PER
    hi = tl.minimum(lo + PER, tl.cast(R, tl.int64))
    rr = lo + tl.arange(0, BR)
    for r in range(lo, hi, BR):
        mr = rr < hi
        off = (rr // R1) * rs0 + (rr % R1) * rs1
        v = tl.load(x_ptr + off[:, None] + (i * istr)[None, :],
                    mask=mr[:, None] & mi[None, :], other=0)
        if NZ:
            v = (v != 0)
        acc += v.to(ACC)
        rr += BR
    s = tl.sum(acc, axis=0)
    tl.store(o_ptr + ps * K0 * I + k0 * I + i, s.to(o_ptr.dtype.element_ty), mask=mi)


def _pow2(n):
    return 1 << max(0, (int(n) - 1).bit_length())


def _collapse(dims):
    res = []
    for s, st in dims:
        if s == 1:
            continue
        if res and res[-1][1] == st * s:
            res[-1] = (res[-1][0] * s, st)
        else:
            res.append((s, st))
    return res


_ACC = {torch.float32: (tl.float32, torch.float32), torch.float16: (tl.float32, torch.float32),
        torch.bfloat16: (tl.float32, torch.float32), torch.float64: (tl.float64, torch.float64)}

_SLOTS = 1056


def _reduce(x, kept, red, out, nz):
    """x: real strided tensor; kept, red: lists of (size, stride); out: contiguous"""
    acc_tl, acc_t = _ACC.get(x.dtype, (tl.int64, torch.int64))
    K = 1
    for s, _ in kept:
        K *= s
    R = 1
    for s, _ in red:
        R *= s
    kd = _collapse(kept)
    rd = _collapse(sorted(red, key=lambda d: -d[1]))
    es = x.element_size()
    if not rd:
        rd = [(1, 1)]
    col = bool(kd) and (kd[-1][1] < rd[-1][1] or (rd[-1][1] == 0 and kd[-1][1] == 1)) \
        and kd[-1][1] > 0 and kd[-1][0] >= 4
    if R == 1:
        col = True
        if not kd:
            kd = [(1, 1)]
    few = False
    if not col and len(rd) == 2 and K <= 4 and len(kd) <= 1:
        # two dimensions that do not merge, one of them too short to be split or to be a row
        few = (rd[1][0] < 128 and rd[0][0] >= 1024) or (rd[0][0] < 132 and rd[1][0] >= 1 << 20)
        if few:
            col = True
            kd = kd or [(1, 1)]
    kd = [(1, 0)] * (2 - len(kd)) + kd
    if col:
        if len(rd) == 1:
            rd = [(1, 0)] + rd
        (K0, ks0), (I, istr) = kd
        (_, rs0), (R1, rs1) = rd
        BI = _pow2(I) if few else min(128 if es <= 4 else 64, max(16, _pow2(I)))
        BR = max(1, min(4096 // BI, _pow2(R)))
        nib = triton.cdiv(I, BI)
        progs = nib * K0
        S = max(1, min(_SLOTS // progs, triton.cdiv(R, BR)))
        per = triton.cdiv(triton.cdiv(R, S), BR) * BR
        S = triton.cdiv(R, per)
        dst = out if S == 1 else torch.empty((S, K), dtype=acc_t, device=x.device)
        _col_sum[(progs * S,)](x, dst, K0, I, ks0, istr, R, R1, rs0, rs1, per, nib,
                               ACC=acc_tl, NZ=nz, BR=BR, BI=BI, num_warps=4)
        if S > 1:
            _reduce(dst, [(K, 1)], [(S, K)], out, False)
        return
    cap = 4096 if es <= 2 else 2048
    if len(rd) == 1:
        Rn, st = rd[0]
        if Rn > cap:
            R0, R1, rs0, rs1 = triton.cdiv(Rn, cap), cap, cap * st, st
        else:
            R0, R1, rs0, rs1 = 1, Rn, 0, st
    else:
        (R0, rs0), (R1, rs1) = rd
    (K0, ks0), (K1, ks1) = kd
    BC = min(cap, max(16, _pow2(R1)))
    BM = max(1, min(cap // BC, _pow2(K)))
    while BM > 1 and triton.cdiv(K, BM) < 264:
        BM //= 2
    progs = triton.cdiv(K, BM)
    S = max(1, min(_SLOTS // progs, R0))
    per = triton.cdiv(R0, S)
    S = triton.cdiv(R0, per)
    dst = out if S == 1 else torch.empty((K, S), dtype=acc_t, device=x.device)
    _row_sum[(progs * S,)](x, dst, K, K1, ks0, ks1, R0, R1, R, rs0, rs1, per, S,
                           ACC=acc_tl, NZ=nz, BM=BM, BC=BC,
                           num_warps=8 if BM * BC >= 2048 else 4)
    if S > 1:
        _reduce(dst, [(K, S)], [(S, 1)], out, False)


def _sum(self, dims, keepdim, dtype):
    x = self
    nd = x.dim()
    if dims is None:
        dims = []
    elif isinstance(dims, int):
        dims = [dims]
    if len(dims) == 0:
        red = list(range(nd))
    else:
        red = []
        for d in dims:
            d = int(d)
            if d < 0:
                d += max(nd, 1)
            if nd == 0:
                continue
            if d in red:
                raise RuntimeError("dim appears multiple times in the list of dims")
            red.append(d)
        red.sort()
    kept = [d for d in range(nd) if d not in red]
    if dtype is None:
        dtype = x.dtype
        if not (dtype.is_floating_point or dtype.is_complex):
            dtype = torch.int64
    elif x.dtype != dtype:
        small = not (x.dtype.is_floating_point or x.dtype.is_complex)
        if not (small and dtype == torch.int64):
            x = x.to(dtype)
    if keepdim:
        oshape = [1 if d in red else x.shape[d] for d in range(nd)]
    else:
        oshape = [x.shape[d] for d in kept]
    K = 1
    for d in kept:
        K *= x.shape[d]
    R = 1
    for d in red:
        R *= x.shape[d]
    if K == 0:
        return torch.empty(oshape, dtype=dtype, device=x.device)
    if R == 0:
        return torch.zeros(oshape, dtype=dtype, device=x.device)
    out = torch.empty(oshape, dtype=dtype, device=x.device)
    if x.dtype.is_complex and x.is_conj():
        x = x.resolve_conj()
    if x.is_neg():
        x = x.resolve_neg()

    def split(t):
        kl = [(t.shape[d], t.stride(d)) for d in kept]
        rl = [(t.shape[d], t.stride(d)) for d in red]
        return kl, rl

    kl, rl = split(x)
    cplx = x.dtype.is_complex
    limit = 1 if cplx else 2
    if len(_collapse(kl)) > limit or len(_collapse(sorted(rl, key=lambda d: -d[1]))) > 2:
        x = x.permute(kept + red).contiguous()
        kl = [(K, R)]
        rl = [(R, 1)]
    nz = False
    if cplx:
        xr = torch.view_as_real(x)
        kl = [(s, 2 * st) for s, st in kl] + [(2, 1)]
        rl = [(s, 2 * st) for s, st in rl]
        _reduce(xr, kl, rl, torch.view_as_real(out), False)
        return out
    if x.dtype == torch.bool:
        x = x.view(torch.uint8)
        nz = True
    if dtype == torch.bool:
        tmp = torch.empty(oshape, dtype=torch.int64, device=x.device)
        _reduce(x, kl, rl, tmp, nz)
        out.copy_(tmp)
        return out
    _reduce(x, kl, rl, out, nz)
    return out


def sum(self, *, dtype=None):
    return _sum(self, None, False, dtype)


def sum_dim_IntList(self, dim, keepdim=False, *, dtype=None):
    return _sum(self, dim, keepdim, dtype)

