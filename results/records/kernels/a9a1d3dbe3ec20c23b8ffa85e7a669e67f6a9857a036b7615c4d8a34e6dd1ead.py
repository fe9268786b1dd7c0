import torch
import triton
import triton.language as tl


@triton.jit
def _rmw_cas(ptrs, val, mask, FT: tl.constexpr, CT: tl.constexpr, MUL: tl.constexpr,
             XCHG: tl.constexpr):
    # ptrs: integer pointers, all of them valid (masked lanes name some element of the output)
    # val: in the type of computation CT; FT the number type of the memory
    old = tl.load(ptrs, mask=mask, other=0)
    done = (mask == 0).to(tl.int32)
    if XCHG:
        f = old.to(FT, bitcast=True)
        new = (f * val).to(old.dtype, bitcast=True)
        new = tl.where(done > 0, old, new)
        got = tl.atomic_cas(ptrs, old, new, sem="relaxed")
        pend = (done == 0) & (got != old)
        one = (tl.zeros_like(val) + 1).to(old.dtype, bitcast=True)
        carry = val
        left = tl.max(pend.to(tl.int32))
        pi = pend.to(tl.int32)
        while left > 0:
            c = tl.atomic_xchg(ptrs, one, mask=pi > 0, sem="relaxed")
            carry = c.to(FT, bitcast=True) * carry
            r = tl.atomic_xchg(ptrs, carry.to(old.dtype, bitcast=True), mask=pi > 0, sem="relaxed")
            carry = r.to(FT, bitcast=True)
            pi = tl.where(r != one, pi, 0)
            left = tl.max(pi)
    else:
        left = tl.max(1 - done)
        while left > 0:
            f = old.to(FT, bitcast=True).to(CT)
            if MUL:
                g = f * val
            else:
                g = f + val
            new = g.to(FT).to(old.dtype, bitcast=True)
            new = tl.where(done > 0, old, new)
            got = tl.atomic_cas(ptrs, old, new, sem="relaxed")
            done = done | (got == old).to(tl.int32)
            old = got
            left = tl.max(1 - done)


@triton.jit
def _put(o_base, oi_base, off, val, mask, OP: tl.constexpr, FT: tl.constexpr, CT: tl.constexpr,
         CAS: tl.constexpr, XCHG: tl.constexpr):
    if OP == 0:
        tl.store(o_base + off, val, mask=mask)
    else:
        if CAS:
            off = tl.where(mask, off, 0)
            _rmw_cas(oi_base + off, val.to(CT), mask, FT, CT, OP == 2, XCHG)
        else:
            tl.atomic_add(o_base + off, val, mask=mask, sem="relaxed")


@triton.jit
def _rows_kernel(x_ptr, i_ptr, s_ptr, o_ptr, oi_ptr, D, J,
                 OP: tl.constexpr, FT: tl.constexpr, CT: tl.constexpr,
                 CAS: tl.constexpr, XCHG: tl.constexpr,
                 BC: tl.constexpr, BJ: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * D
    o_ptr += row * D
    oi_ptr += row * D
    i_ptr += row * J
    s_ptr += row * J
    for c in range(0, D, BC):
        cc = c + tl.arange(0, BC)
        m = cc < D
        v = tl.load(x_ptr + cc, mask=m)
        tl.store(o_ptr + cc, v, mask=m)
    tl.debug_barrier()
    for j in range(0, J, BJ):
        jj = j + tl.arange(0, BJ)
        m = jj < J
        ix = tl.load(i_ptr + jj, mask=m, other=0)
        v = tl.load(s_ptr + jj, mask=m, other=0)
        _put(o_ptr, oi_ptr, ix, v, m, OP, FT, CT, CAS, XCHG)


@triton.jit
def _cols_kernel(x_ptr, i_ptr, s_ptr, o_ptr, oi_ptr, D, J, I, nblk,
                 OP: tl.constexpr, FT: tl.constexpr, CT: tl.constexpr,
                 CAS: tl.constexpr, XCHG: tl.constexpr,
                 BR: tl.constexpr, BI: tl.constexpr):
    pid = tl.program_id(0)
    o = (pid // nblk).to(tl.int64)
    col = (pid % nblk) * BI + tl.arange(0, BI)
    mc = (col < I)[None, :]
    x_ptr += o * D * I
    o_ptr += o * D * I
    oi_ptr += o * D * I
    i_ptr += o * J * I
    s_ptr += o * J * I
    for r in range(0, D, BR):
        rr = r + tl.arange(0, BR)
        m = (rr < D)[:, None] & mc
        off = rr.to(tl.int64)[:, None] * I + col[None, :]
        v = tl.load(x_ptr + off, mask=m)
        tl.store(o_ptr + off, v, mask=m)
    tl.debug_barrier()
    for j in range(0, J, BR):
        jj = j + tl.arange(0, BR)
        m = (jj < J)[:, None] & mc
        off = jj.to(tl.int64)[:, None] * I + col[None, :]
        ix = tl.load(i_ptr + off, mask=m, other=0)
        v = tl.load(s_ptr + off, mask=m, other=0)
        dst = ix * I + col[None, :]
        _put(o_ptr, oi_ptr, dst, v, m, OP, FT, CT, CAS, XCHG)


@triton.jit
def _panel_kernel(i_ptr, s_ptr, o_ptr, oi_ptr, D, J, I, nblk, njb,
                  OP: tl.constexpr, FT: tl.constexpr, CT: tl.constexpr,
                  CAS: tl.constexpr, XCHG: tl.constexpr,
                  BR: tl.constexpr, BI: tl.constexpr):
    pid = tl.program_id(0)
    jb = pid % njb
    t = pid // njb
    o = (t // nblk).to(tl.int64)
    col = (t % nblk) * BI + tl.arange(0, BI)
    mc = (col < I)[None, :]
    o_ptr += o * D * I
    oi_ptr += o * D * I
    i_ptr += o * J * I
    s_ptr += o * J * I
    jj = jb * BR + tl.arange(0, BR)
    m = (jj < J)[:, None] & mc
    off = jj.to(tl.int64)[:, None] * I + col[None, :]
    ix = tl.load(i_ptr + off, mask=m, other=0)
    v = tl.load(s_ptr + off, mask=m, other=0)
    dst = ix * I + col[None, :]
    _put(o_ptr, oi_ptr, dst, v, m, OP, FT, CT, CAS, XCHG)


@triton.jit
def _generic_kernel(i_ptr, s_ptr, o_ptr, oi_ptr, n, ibase, obase, sd,
                    d1, d2, d3, d4, d5, d6, d7,
                    s0, s1, s2, s3, s4, s5, s6, s7,
                    OP: tl.constexpr, FT: tl.constexpr, CT: tl.constexpr,
                    CAS: tl.constexpr, XCHG: tl.constexpr,
                    BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    ix = tl.load(i_ptr + ibase + offs, mask=m, other=0)
    v = tl.load(s_ptr + ibase + offs, mask=m, other=0)
    r = offs
    p = (r % d7) * s7
    r = r // d7
    p += (r % d6) * s6
    r = r // d6
    p += (r % d5) * s5
    r = r // d5
    p += (r % d4) * s4
    r = r // d4
    p += (r % d3) * s3
    r = r // d3
    p += (r % d2) * s2
    r = r // d2
    p += (r % d1) * s1
    r = r // d1
    p += r * s0
    dst = p + obase + ix * sd
    _put(o_ptr, oi_ptr, dst, v, m, OP, FT, CT, CAS, XCHG)


_INT = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_TL = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16,
       torch.float64: tl.float64, torch.int32: tl.int32, torch.int64: tl.int64,
       torch.int16: tl.int16, torch.uint8: tl.uint8, torch.int8: tl.int8}


def _pow2(n):
    return 1 << max(0, (int(n) - 1).bit_length())


def _generic(idx, s, out, oi, n, dims, ibase, obase, sd, kw):
    if len(dims) > 8:
        size, st = dims[0]
        inner = n // size
        for i in range(size):
            _generic(idx, s, out, oi, inner, dims[1:], ibase + i * inner, obase + i * st, sd, kw)
        return
    dims = [(1, 0)] * (8 - len(dims)) + list(dims)
    BLOCK = 512
    _generic_kernel[(triton.cdiv(n, BLOCK),)](
        idx, s, out, oi, n, ibase, obase, sd,
        *[d[0] for d in dims[1:]], *[d[1] for d in dims],
        BLOCK=BLOCK, num_warps=4, **kw)


def _scatter(self, dim, index, src, op):
    x = self
    if x.is_complex():
        if x.is_conj():
            x = x.resolve_conj()
        if src.is_conj():
            src = src.resolve_conj()
    if x.is_neg():
        x = x.resolve_neg()
    if src.is_neg():
        src = src.resolve_neg()
    res = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if res.numel() == 0:
        return res
    if index.numel() == 0:
        res.copy_(x)
        return res
    out = res
    if x.dim() == 0:
        x = x.unsqueeze(0)
        out = out.unsqueeze(0)
    if index.dim() == 0:
        index = index.unsqueeze(0)
    if src.dim() == 0:
        src = src.unsqueeze(0)
    nd = x.dim()
    if dim < 0:
        dim += nd
    es = x.element_size()
    it = _INT[es]
    if op == 0:
        if x.dtype != it:
            x = x.view(it)
            out = out.view(it)
            src = src.view(it)
        oi = out
    else:
        oi = out.view(it) if out.dtype != it else out
    for d in range(nd):
        if src.shape[d] != index.shape[d]:
            src = src.narrow(d, 0, index.shape[d])
    idx = index if index.is_contiguous() else index.contiguous()
    s = src if src.is_contiguous() else src.contiguous()

    dt = out.dtype
    FT = _TL[dt]
    CT = tl.float32 if dt in (torch.float16, torch.bfloat16) else FT
    cas = op == 2 or (op == 1 and es == 2)
    xchg = False
    kw = dict(OP=op, FT=FT, CT=CT, CAS=cas, XCHG=xchg)

    same = all(index.shape[d] == x.shape[d] for d in range(nd) if d != dim)
    O = 1
    for d in range(dim):
        O *= x.shape[d]
    I = 1
    for d in range(dim + 1, nd):
        I *= x.shape[d]
    D = x.shape[dim]
    J = index.shape[dim]
    if same and D < 2 ** 30 and J < 2 ** 30 and I < 2 ** 30:
        if I == 1 and (O >= 200 or D <= 8192):
            xc = x if x.is_contiguous() else x.contiguous()
            big = D >= 2048
            BC = min(8192 if es <= 2 else 4096, max(64, _pow2(D)))
            BJ = min(1024, max(32, _pow2(J)))
            _rows_kernel[(O,)](xc, idx, s, out, oi, D, J, BC=BC, BJ=BJ,
                               num_warps=8 if big else 4, **kw)
            return res
        BI = min(64 if es <= 4 else 32, max(16, _pow2(I)))
        nblk = triton.cdiv(I, BI)
        if I > 1 and (O * nblk >= 264 or D * BI <= 16384):
            xc = x if x.is_contiguous() else x.contiguous()
            BR = max(1, 2048 // BI)
            BR = min(BR, max(4, _pow2(D)))
            _cols_kernel[(O * nblk,)](xc, idx, s, out, oi, D, J, I, nblk, BR=BR, BI=BI,
                                      num_warps=4, **kw)
            return res
        if I > 1:
            out.copy_(x)
            BI = min(32, max(8, _pow2(I)))
            nblk = triton.cdiv(I, BI)
            BR = 1024 // BI
            njb = triton.cdiv(J, BR)
            _panel_kernel[(O * nblk * njb,)](idx, s, out, oi, D, J, I, nblk, njb, BR=BR, BI=BI,
                                             num_warps=4, **kw)
            return res
    out.copy_(x)
    ostr = list(out.stride())
    dims = []
    for d in range(nd):
        sz = index.shape[d]
        if sz == 1:
            continue
        st = 0 if d == dim else ostr[d]
        if dims and dims[-1][1] == st * sz:
            dims[-1] = (dims[-1][0] * sz, st)
        else:
            dims.append((sz, st))
    _generic(idx, s, out, oi, idx.numel(), dims, 0, 0, ostr[dim], kw)
    return res


def scatter_src(self, dim, index, src):
    return _scatter(self, dim, index, src, 0)


def scatter_reduce(self, dim, index, src, *, reduce):
    return _scatter(self, dim, index, src, 1 if reduce == "add" else 2)

