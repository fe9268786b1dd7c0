import torch
import triton
import triton.language as tl


@triton.jit
def _sgn_real(x_ptr, o_ptr, n, FLT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    x = tl.load(x_ptr + offs, mask=m, other=0)
    if FLT == 16:
        x = x.to(tl.float32)
    r = (x > 0).to(tl.int32) - (x < 0).to(tl.int32)
    if FLT == 16:
        y = r.to(tl.float32).to(o_ptr.dtype.element_ty)
    else:
        y = r.to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + offs, y, mask=m)


@triton.jit
def _sgn_even(x_ptr, o_ptr, BLOCK: tl.constexpr):
    # whole blocks of floating numbers
    base = tl.program_id(0).to(tl.int64) * BLOCK
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + c).to(tl.float32)
    y = tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))
    tl.store(o_ptr + base + c, y.to(o_ptr.dtype.element_ty))


@triton.jit
def _sgn_cplx(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    a = tl.load(x_ptr + 2 * offs, mask=m, other=0.0).to(tl.float64)
    b = tl.load(x_ptr + 2 * offs + 1, mask=m, other=0.0).to(tl.float64)
    aa = tl.abs(a)
    ab = tl.abs(b)
    inf = (aa == float("inf")) | (ab == float("inf"))
    mx = tl.where(aa > ab, aa, ab)
    sc = tl.where((mx > 0.0) & (inf == 0), mx, 1.0)
    ar = a / sc
    br = b / sc
    mod = tl.sqrt(ar * ar + br * br)
    mod = tl.where(inf, float("inf"), mod)
    zero = (a == 0.0) & (b == 0.0)
    mod = tl.where(zero, 1.0, mod)
    re = tl.where(zero, 0.0, ar / mod)
    im = tl.where(zero, 0.0, br / mod)
    ty = o_ptr.dtype.element_ty
    tl.store(o_ptr + 2 * offs, re.to(ty), mask=m)
    tl.store(o_ptr + 2 * offs + 1, im.to(ty), mask=m)


def _run(x, out):
    n = x.numel()
    if n == 0:
        return out
    dt = x.dtype
    if dt.is_complex and x.is_conj():
        x = x.resolve_conj()
    if x.is_neg():
        x = x.resolve_neg()
    if not x.is_contiguous():
        x = x.contiguous()
    dst = out
    if not out.is_contiguous() or (dt.is_complex and out.is_conj()) or out.is_neg():
        dst = torch.empty(out.shape, dtype=out.dtype, device=out.device)
    if dt.is_complex:
        BLOCK = 512
        _sgn_cplx[(triton.cdiv(n, BLOCK),)](torch.view_as_real(x), torch.view_as_real(dst), n,
                                            BLOCK=BLOCK, num_warps=4)
    elif n % 1024 == 0 and dt == dst.dtype and dt in (torch.float32, torch.float16, torch.bfloat16):
        # one load of 16 bytes per thread where it is large
        BLOCK, warps = 512, 4
        if n > 131072:
            BLOCK, warps = (1024, 8) if dt == torch.float32 else (2048, 8) if n % 2048 == 0 else (1024, 4)
        _sgn_even[(n // BLOCK,)](x, dst, BLOCK=BLOCK, num_warps=warps)
    else:
        a, b = x, dst
        if dt == torch.bool:
            a, b = x.view(torch.uint8), dst.view(torch.uint8)
        BLOCK = 1024
        _sgn_real[(triton.cdiv(n, BLOCK),)](
            a, b, n, FLT=16 if dt in (torch.float16, torch.bfloat16) else 0,
            BLOCK=BLOCK, num_warps=4)
    if dst is not out:
        out.copy_(dst)
    return out


def sgn(self):
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    return _run(self, out)


def sgn_out(self, *, out):
    return _run(self, out)

