import torch
import triton
import triton.language as tl


@triton.jit
def _rsqrt32(x_ptr, o_ptr, n, TINY: tl.constexpr, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    # the block's place is added to the pointers once, the rest counts in 32 bits
    base = tl.program_id(0).to(tl.int64) * BLOCK
    c = tl.arange(0, BLOCK)
    m = c < n - base
    if EVEN:
        x = tl.load(x_ptr + base + c).to(tl.float32)
    else:
        x = tl.load(x_ptr + base + c, mask=m, other=1).to(tl.float32)
    if TINY:
        # subnormal numbers come
        tiny = tl.abs(x) < 5.421010862427522e-20  # 2**-64
        xs = tl.where(tiny, x * 18446744073709551616.0, x)
        y = tl.rsqrt(xs)
        y = tl.where(tiny, y * 4294967296.0, y)
    else:
        y = tl.rsqrt(x)
    y = y.to(o_ptr.dtype.element_ty)
    if EVEN:
        tl.store(o_ptr + base + c, y)
    else:
        tl.store(o_ptr + base + c, y, mask=m)


@triton.jit
def _rsqrt64(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    x = tl.load(x_ptr + offs, mask=m, other=1.0)
    y = 1.0 / tl.sqrt(x)
    tl.store(o_ptr + offs, y, mask=m)


@triton.jit
def _rsqrt_cplx(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    a = tl.load(x_ptr + 2 * offs, mask=m, other=1.0).to(tl.float64)
    b = tl.load(x_ptr + 2 * offs + 1, mask=m, other=0.0).to(tl.float64)
    mod = tl.sqrt(a * a + b * b)
    aa = tl.abs(a)
    ab = tl.abs(b)
    t = tl.sqrt(0.5 * (mod + aa))
    zero = t == 0.0
    q = tl.where(zero, 0.0, ab / tl.where(zero, 1.0, 2.0 * t))
    bneg = b.to(tl.int64, bitcast=True) < 0
    pos = a >= 0.0
    c = tl.where(pos, t, q)
    d = tl.where(pos, q, t)
    d = tl.where(bneg, -d, d)
    isn = (a != a) | (b != b)
    # 1 / (c + d i)
    cbig = tl.abs(c) >= tl.abs(d)
    den = tl.where(cbig, c, d)
    num = tl.where(cbig, d, c)
    rat = num / den
    scl = 1.0 / (den + num * rat)
    re = tl.where(cbig, scl, rat * scl)
    im = tl.where(cbig, -rat * scl, -scl)
    bothz = (c == 0.0) & (d == 0.0)
    re = tl.where(bothz, float("inf"), re)
    im = tl.where(bothz, float("nan"), im)
    re = tl.where(isn, float("nan"), re)
    im = tl.where(isn, float("nan"), im)
    ty = o_ptr.dtype.element_ty
    tl.store(o_ptr + 2 * offs, re.to(ty), mask=m)
    tl.store(o_ptr + 2 * offs + 1, im.to(ty), mask=m)


def rsqrt(self):
    x = self
    dt = x.dtype
    odt = dt if (dt.is_floating_point or dt.is_complex) else torch.float32
    out = torch.empty(x.shape, dtype=odt, device=x.device)
    n = x.numel()
    if n == 0:
        return out
    if dt.is_complex and x.is_conj():
        x = x.resolve_conj()
    if x.is_neg():
        x = x.resolve_neg()
    if not x.is_contiguous():
        x = x.contiguous()
    BLOCK = 1024
    if dt.is_complex:
        _rsqrt_cplx[(triton.cdiv(n, 512),)](torch.view_as_real(x), torch.view_as_real(out), n,
                                            BLOCK=512, num_warps=4)
    elif dt == torch.float64:
        _rsqrt64[(triton.cdiv(n, BLOCK),)](x, out, n, BLOCK=BLOCK, num_warps=4)
    else:
        if dt == torch.bool:
            x = x.view(torch.uint8)
        BLOCK, warps = 1024, 4
        if n <= 131072:
            BLOCK = 512
        _rsqrt32[(triton.cdiv(n, BLOCK),)](x, out, n, TINY=dt in (torch.float32, torch.bfloat16),
                                           EVEN=n % BLOCK == 0, BLOCK=BLOCK, num_warps=warps)
    return out

