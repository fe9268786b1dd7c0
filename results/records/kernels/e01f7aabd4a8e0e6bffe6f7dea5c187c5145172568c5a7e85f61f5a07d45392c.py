import struct
import math
import torch
import triton
import triton.language as tl


@triton.jit
def _conv(x, CD: tl.constexpr, CT: tl.constexpr):
    # to the common dtype CD, then to the dtype CT of the arithmetic
    if CT == tl.float32:
        x = x.to(tl.float32)
        if CD != tl.float32:
            x = x.to(CD).to(tl.float32)
        return x
    else:
        return x.to(CD).to(CT)


@triton.jit
def _quot(a, b, MODE: tl.constexpr, CT: tl.constexpr):
    # MODE 0: the quotient, 1: towards zero, 2: down
    if CT == tl.float32 or CT == tl.float64:
        if MODE == 0:
            q = a / b
        else:
            if CT == tl.float32:
                t = tl.div_rn(a, b)
            else:
                t = a / b
            if MODE == 1:
                q = tl.where(t < 0.0, tl.ceil(t), tl.floor(t))
            else:
                q = tl.floor(t)
                differ = (a < 0.0) != (b < 0.0)
                q = tl.where((q == 0.0) & (a != 0.0) & differ, -1.0, q)  # also where floor flushes a subnormal
                q = tl.where((tl.abs(a) == float("inf")) & (b != 0.0), float("nan"), q)
        return q
    else:
        q = a // b
        r = a - q * b
        if MODE == 1:
            fix = (r != 0) & ((r < 0) != (a < 0))
            q = tl.where(fix, q + 1, q)
        else:
            fix = (r != 0) & ((r < 0) != (b < 0))
            q = tl.where(fix, q - 1, q)
        return q


@triton.jit
def _flat_kernel(
    a_ptr, b_ptr, o_ptr, n, sa, sb,
    BLOCK: tl.constexpr, MODE: tl.constexpr, CD: tl.constexpr, CT: tl.constexpr, EVEN: tl.constexpr,
):
    idx = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        a = tl.load(a_ptr + idx * sa)
        b = tl.load(b_ptr + idx * sb)
    else:
        m = idx < n
        a = tl.load(a_ptr + idx * sa, mask=m, other=0)
        b = tl.load(b_ptr + idx * sb, mask=m, other=1)
    q = _quot(_conv(a, CD, CT), _conv(b, CD, CT), MODE, CT).to(o_ptr.dtype.element_ty)
    if EVEN:
        tl.store(o_ptr + idx, q)
    else:
        tl.store(o_ptr + idx, q, mask=m)


@triton.jit(do_not_specialize=["s"])
def _scalar_kernel(
    a_ptr, s, o_ptr, n, sa,
    BLOCK: tl.constexpr, MODE: tl.constexpr, CD: tl.constexpr, CT: tl.constexpr, EVEN: tl.constexpr,
):
    idx = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        a = tl.load(a_ptr + idx * sa)
    else:
        m = idx < n
        a = tl.load(a_ptr + idx * sa, mask=m, other=0)
    b = tl.full([BLOCK], s, CT)
    q = _quot(_conv(a, CD, CT), b, MODE, CT).to(o_ptr.dtype.element_ty)
    if EVEN:
        tl.store(o_ptr + idx, q)
    else:
        tl.store(o_ptr + idx, q, mask=m)


@triton.jit
def _tile_kernel(
    a_ptr, b_ptr, o_ptr, R, C, sa0, sa1, sb0, sb1, tiles_c,
    BR: tl.constexpr, BC: tl.constexpr,
    MODE: tl.constexpr, CD: tl.constexpr, CT: tl.constexpr,
):
    pid = tl.program_id(0)
    r = (pid // tiles_c).to(tl.int64) * BR + tl.arange(0, BR)
    c = (pid % tiles_c).to(tl.int64) * BC + tl.arange(0, BC)
    m = (r < R)[:, None] & (c < C)[None, :]
    a = tl.load(a_ptr + r[:, None] * sa0 + c[None, :] * sa1, mask=m, other=0)
    b = tl.load(b_ptr + r[:, None] * sb0 + c[None, :] * sb1, mask=m, other=1)
    q = _quot(_conv(a, CD, CT), _conv(b, CD, CT), MODE, CT).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + r[:, None] * C + c[None, :], q, mask=m)


@triton.jit
def _rowvec_kernel(
    a_ptr, b_ptr, o_ptr, R, C, sa0, sb0, tiles_c,
    BR: tl.constexpr, BC: tl.constexpr, A_VEC: tl.constexpr,
    MODE: tl.constexpr, CD: tl.constexpr, CT: tl.constexpr,
):
    # one operand is a vector along the last dimension, the same in every row
    pid = tl.program_id(0)
    r0 = (pid // tiles_c).to(tl.int64) * BR
    c = (pid % tiles_c).to(tl.int64) * BC + tl.arange(0, BC)
    cm = c < C
    if A_VEC:
        v = _conv(tl.load(a_ptr + c, mask=cm, other=0), CD, CT)
    else:
        v = _conv(tl.load(b_ptr + c, mask=cm, other=1), CD, CT)
    for i in tl.static_range(BR):
        r = r0 + i
        m = cm & (r < R)
        if A_VEC:
            b = _conv(tl.load(b_ptr + r * sb0 + c, mask=m, other=1), CD, CT)
            q = _quot(v, b, MODE, CT)
        else:
            a = _conv(tl.load(a_ptr + r * sa0 + c, mask=m, other=0), CD, CT)
            q = _quot(a, v, MODE, CT)
        tl.store(o_ptr + r * C + c, q.to(o_ptr.dtype.element_ty), mask=m)


@triton.jit
def _complex_kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    idx = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = idx < n
    a = tl.load(a_ptr + 2 * idx, mask=m, other=0.0).to(tl.float64)
    b = tl.load(a_ptr + 2 * idx + 1, mask=m, other=0.0).to(tl.float64)
    c = tl.load(b_ptr + 2 * idx, mask=m, other=1.0).to(tl.float64)
    d = tl.load(b_ptr + 2 * idx + 1, mask=m, other=0.0).to(tl.float64)
    ac = tl.abs(c)
    ad = tl.abs(d)
    first = ac >= ad
    big = tl.where(first, c, d)
    sml = tl.where(first, d, c)
    zero = (ac == 0.0) & (ad == 0.0)
    bigs = tl.where(zero, 1.0, big)
    rat = sml / bigs
    den = bigs + sml * rat
    re = tl.where(first, a + b * rat, a * rat + b) / den
    im = tl.where(first, b - a * rat, b * rat - a) / den
    re = tl.where(zero, a / ac, re)
    im = tl.where(zero, b / ad, im)
    ty = o_ptr.dtype.element_ty
    tl.store(o_ptr + 2 * idx, re.to(ty), mask=m)
    tl.store(o_ptr + 2 * idx + 1, im.to(ty), mask=m)


_TL = {
    torch.float16: tl.float16,
    torch.bfloat16: tl.bfloat16,
    torch.float32: tl.float32,
    torch.float64: tl.float64,
    torch.uint8: tl.uint8,
    torch.int8: tl.int8,
    torch.int16: tl.int16,
    torch.int32: tl.int32,
    torch.int64: tl.int64,
    torch.bool: tl.uint8,
}

_MODES = {None: 0, "trunc": 1, "floor": 2}


def _plain(t):
    if t.is_conj() or t.is_neg():
        t = torch.empty(t.shape, dtype=t.dtype, device=t.device).copy_(t)
    return t


def _raw(t):
    return t.view(torch.uint8) if t.dtype == torch.bool else t


def _types(dt):
    if dt == torch.float64:
        return _TL[dt], tl.float64
    if dt.is_floating_point:
        return _TL[dt], tl.float32
    if dt == torch.int64:
        return _TL[dt], tl.int64
    return _TL[dt], tl.int32


def _block(dt, n):
    if n <= (1 << 18):
        return 256, 2
    if dt.itemsize <= 2:
        return 2048, 4
    return 1024, 4


def _fits(v, dt):
    # a number as dt holds it: rounded, infinite where it is beyond it (torch.full raises there)
    form = {torch.float32: "<f", torch.complex64: "<f", torch.complex32: "<e"}.get(dt)
    if form is None:
        return v
    parts = []
    for p in (v.real, v.imag):
        try:
            p = struct.unpack(form, struct.pack(form, p))[0]
        except OverflowError:
            p = math.copysign(float("inf"), p)
        parts.append(p)
    return complex(*parts) if dt.is_complex else parts[0]


def _div_complex(a, b, shape, dt):
    dev = a.device
    ac = torch.empty(shape, dtype=dt, device=dev)
    ac.copy_(a.expand(shape))
    if isinstance(b, torch.Tensor):
        bc = torch.empty(shape, dtype=dt, device=dev)
        bc.copy_(b.expand(shape))
    else:
        bc = torch.full(shape, _fits(b, dt), dtype=dt, device=dev)
    out = torch.empty(shape, dtype=dt, device=dev)
    n = out.numel()
    if n:
        _complex_kernel[(triton.cdiv(n, 256),)](
            torch.view_as_real(ac), torch.view_as_real(bc), torch.view_as_real(out), n, BLOCK=256, num_warps=4
        )
    return out


def _collapse(shape, st_a, st_b):
    dims = []
    for sz, x, y in zip(shape, st_a, st_b):
        if sz == 1:
            continue
        if dims and dims[-1][1] == x * sz and dims[-1][2] == y * sz:
            dims[-1] = (dims[-1][0] * sz, x, y)
        else:
            dims.append((sz, x, y))
    if not dims:
        dims = [(1, 1, 1)]
    return dims


def _div_tensor(a, b, mode):
    shape = torch.broadcast_shapes(a.shape, b.shape)
    dt = torch.result_type(a, b)
    if dt.is_complex:
        return _div_complex(a, b, shape, dt)
    if mode == 0 and not dt.is_floating_point:
        dt = torch.float32
    out = torch.empty(shape, dtype=dt, device=a.device)
    n = out.numel()
    if n == 0:
        return out
    cd, ct = _types(dt)
    a = _raw(_plain(a)).expand(shape)
    b = _raw(_plain(b)).expand(shape)
    o = _raw(out)
    dims = _collapse(shape, a.stride(), b.stride())
    if len(dims) > 2:
        if not a.is_contiguous():
            a = torch.empty(shape, dtype=a.dtype, device=a.device).copy_(a)
            dims = _collapse(shape, a.stride(), b.stride())
        if len(dims) > 2:
            b = torch.empty(shape, dtype=b.dtype, device=b.device).copy_(b)
            dims = _collapse(shape, a.stride(), b.stride())
    if len(dims) == 1:
        _, sa, sb = dims[0]
        BLOCK, warps = _block(dt, n)
        _flat_kernel[(triton.cdiv(n, BLOCK),)](
            a, b, o, n, sa, sb, BLOCK=BLOCK, MODE=mode, CD=cd, CT=ct, EVEN=(n % BLOCK == 0), num_warps=warps
        )
        return out
    (R, sa0, sb0), (C, sa1, sb1) = dims
    if sa1 == 1 and sb1 == 1 and (sa0 == 0 or sb0 == 0) and C >= 512:
        BC = 1024
        BR = 8 if n > (1 << 22) else 1
        tc = triton.cdiv(C, BC)
        _rowvec_kernel[(triton.cdiv(R, BR) * tc,)](
            a, b, o, R, C, sa0, sb0, tc,
            BR=BR, BC=BC, A_VEC=(sa0 == 0), MODE=mode, CD=cd, CT=ct, num_warps=4,
        )
        return out
    total = 2048 if n > (1 << 18) else 512
    BC = min(triton.next_power_of_2(C), 64 if (sa1 not in (0, 1) or sb1 not in (0, 1)) else total)
    BR = min(triton.next_power_of_2(R), max(1, total // BC))
    BC = min(triton.next_power_of_2(C), max(1, total // BR))
    tc = triton.cdiv(C, BC)
    _tile_kernel[(triton.cdiv(R, BR) * tc,)](
        a, b, o, R, C, sa0, sa1, sb0, sb1, tc,
        BR=BR, BC=BC, MODE=mode, CD=cd, CT=ct, num_warps=4,
    )
    return out


def _wrap(v, dt):
    bits = dt.itemsize * 8
    v &= (1 << bits) - 1
    if dt != torch.uint8 and dt != torch.bool and v >= (1 << (bits - 1)):
        v -= 1 << bits
    return v


def _div_scalar(a, s, mode):
    shape = a.shape
    dt = torch.result_type(a, s)
    if dt.is_complex:
        return _div_complex(a, s, shape, dt)
    if mode == 0 and not dt.is_floating_point:
        dt = torch.float32
    if dt == torch.float64:
        b = torch.full((), float(s), dtype=torch.float64, device=a.device)
        return _div_tensor(a, b, mode)
    out = torch.empty(shape, dtype=dt, device=a.device)
    n = out.numel()
    if n == 0:
        return out
    cd, ct = _types(dt)
    a = _raw(_plain(a))
    dims = _collapse(shape, a.stride(), a.stride())
    if len(dims) > 1:
        a = torch.empty(shape, dtype=a.dtype, device=a.device).copy_(a)
        dims = [(n, 1, 1)]
    sv = float(s) if dt.is_floating_point else _wrap(int(s), dt)
    BLOCK, warps = _block(dt, n)
    _scalar_kernel[(triton.cdiv(n, BLOCK),)](
        a, sv, _raw(out), n, dims[0][1],
        BLOCK=BLOCK, MODE=mode, CD=cd, CT=ct, EVEN=(n % BLOCK == 0), num_warps=warps,
    )
    return out


def div_Tensor(self, other):
    return _div_tensor(self, other, 0)


def div_Scalar(self, other):
    return _div_scalar(self, other, 0)


def div_Tensor_mode(self, other, *, rounding_mode):
    return _div_tensor(self, other, _MODES[rounding_mode])


def div_Scalar_mode(self, other, *, rounding_mode):
    return _div_scalar(self, other, _MODES[rounding_mode])

