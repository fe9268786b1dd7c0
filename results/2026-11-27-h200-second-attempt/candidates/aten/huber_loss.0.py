import torch
import triton
import triton.language as tl


@triton.jit
def _number(delta, F64: tl.constexpr):
    # a Python number, which comes as float64, in the arithmetic's type
    d = tl.full([1], delta, tl.float64)
    if not F64:
        d = d.to(tl.float32)
    return d


@triton.jit
def _huber(a, b, delta, F64: tl.constexpr):
    if F64:
        x = a.to(tl.float64)
        y = b.to(tl.float64)
    else:
        x = a.to(tl.float32)
        y = b.to(tl.float32)
    z = tl.abs(x - y)
    h = 0.5 * z
    return tl.where(z <= delta, h * z, delta * (z - 0.5 * delta))


@triton.jit(do_not_specialize=["delta"])
def _each_kernel(
    a_ptr, b_ptr, o_ptr, n, sa, sb, delta: tl.float64,
    BLOCK: tl.constexpr, F64: tl.constexpr, EVEN: tl.constexpr,
):
    idx = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    dl = _number(delta, F64)
    if EVEN:
        a = tl.load(a_ptr + idx * sa)
        b = tl.load(b_ptr + idx * sb)
    else:
        m = idx < n
        a = tl.load(a_ptr + idx * sa, mask=m, other=0.0)
        b = tl.load(b_ptr + idx * sb, mask=m, other=0.0)
    r = _huber(a, b, dl, F64).to(o_ptr.dtype.element_ty)
    if EVEN:
        tl.store(o_ptr + idx, r)
    else:
        tl.store(o_ptr + idx, r, mask=m)


@triton.jit(do_not_specialize=["n", "delta"])
def _sum_kernel(
    a_ptr, b_ptr, o_ptr, n, n_full, n_blocks, sa, sb, delta: tl.float64,
    BLOCK: tl.constexpr, F64: tl.constexpr, FINAL: tl.constexpr, MEAN: tl.constexpr,
):
    pid = tl.program_id(0)
    step = tl.num_programs(0)
    lane = tl.arange(0, BLOCK)
    blk = pid.to(tl.int64) * 0 + BLOCK
    dl = _number(delta, F64)
    if F64:
        acc = tl.zeros([BLOCK], tl.float64)
    else:
        acc = tl.zeros([BLOCK], tl.float32)
    for i in range(pid, n_full, step):
        idx = i * blk + lane
        a = tl.load(a_ptr + idx * sa)
        b = tl.load(b_ptr + idx * sb)
        acc += _huber(a, b, dl, F64)
    # the last, partial block
    for i in range(n_full + pid, n_blocks, step):
        idx = i * blk + lane
        m = idx < n
        a = tl.load(a_ptr + idx * sa, mask=m, other=0.0)
        b = tl.load(b_ptr + idx * sb, mask=m, other=0.0)
        acc += tl.where(m, _huber(a, b, dl, F64), 0.0)
    s = tl.sum(acc, axis=0)
    if FINAL:
        if MEAN:
            s = s.to(tl.float64) / n.to(tl.float64)
        if o_ptr.dtype.element_ty == tl.float64:
            tl.store(o_ptr, s)
        else:
            tl.store(o_ptr, s.to(tl.float32).to(o_ptr.dtype.element_ty))
    else:
        tl.store(o_ptr + pid, s)


@triton.jit(do_not_specialize=["n"])
def _final_kernel(p_ptr, o_ptr, G, n, BLOCK: tl.constexpr, MEAN: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = tl.load(p_ptr + i, mask=i < G, other=0.0).to(tl.float64)
    s = tl.sum(p, axis=0)
    if MEAN:
        s = s / n.to(tl.float64)
    if o_ptr.dtype.element_ty == tl.float64:
        tl.store(o_ptr, s)
    else:
        tl.store(o_ptr, s.to(tl.float32).to(o_ptr.dtype.element_ty))


def _operands(a, b, shape):
    a = a.expand(shape)
    b = b.expand(shape)
    if a.is_neg():
        a = torch.empty(shape, dtype=a.dtype, device=a.device).copy_(a)
    if b.is_neg():
        b = torch.empty(shape, dtype=b.dtype, device=b.device).copy_(b)

    def line(t):
        # the stride of t as one dimension, or None
        st, span = None, 1
        for sz, s in reversed(list(zip(t.shape, t.stride()))):
            if sz == 1:
                continue
            if st is None:
                st = s
            elif s != st * span:
                return None
            span *= sz
        return 1 if st is None else st

    sa, sb = line(a), line(b)
    if sa is None:
        a, sa = torch.empty(shape, dtype=a.dtype, device=a.device).copy_(a), 1
    if sb is None:
        b, sb = torch.empty(shape, dtype=b.dtype, device=b.device).copy_(b), 1
    return a, b, sa, sb


def _each(self, target, delta, out):
    n = out.numel()
    if n == 0:
        return
    a, b, sa, sb = _operands(self, target, out.shape)
    f64 = out.dtype == torch.float64
    if n <= (1 << 18):
        BLOCK, warps = 256, 2
    elif out.element_size() == 2:
        BLOCK, warps = 2048, 4
    else:
        BLOCK, warps = 1024, 4
    delta = float(delta)
    _each_kernel[(triton.cdiv(n, BLOCK),)](
        a, b, out, n, sa, sb, delta,
        BLOCK=BLOCK, F64=f64, EVEN=(n % BLOCK == 0), num_warps=warps,
    )


def huber_loss(self, target, reduction=1, delta=1.0):
    shape = torch.broadcast_shapes(self.shape, target.shape)
    dt = torch.result_type(self, target)
    dev = self.device
    if reduction == 0:
        out = torch.empty(shape, dtype=dt, device=dev)
        _each(self, target, delta, out)
        return out
    n = 1
    for s in shape:
        n *= s
    mean = reduction == 1
    if n == 0:
        return torch.full((), float("nan") if mean else 0.0, dtype=dt, device=dev)
    out = torch.empty((), dtype=dt, device=dev)
    a, b, sa, sb = _operands(self, target, shape)
    f64 = dt == torch.float64
    delta = float(delta)
    if n <= 32768:
        BLOCK = 4096 if n > 1024 else 1024
        warps = 16 if n > 1024 else 4
        _sum_kernel[(1,)](
            a, b, out, n, n // BLOCK, triton.cdiv(n, BLOCK), sa, sb, delta,
            BLOCK=BLOCK, F64=f64, FINAL=True, MEAN=mean, num_warps=warps,
        )
        return out
    BLOCK = 4096 if dt.itemsize == 2 else 2048
    blocks = triton.cdiv(n, BLOCK)
    G = min(blocks, 132 * 8)
    part = torch.empty((G,), dtype=torch.float64 if f64 else torch.float32, device=dev)
    _sum_kernel[(G,)](
        a, b, part, n, n // BLOCK, blocks, sa, sb, delta,
        BLOCK=BLOCK, F64=f64, FINAL=False, MEAN=mean, num_warps=8,
    )
    _final_kernel[(1,)](part, out, G, n, BLOCK=triton.next_power_of_2(G), MEAN=mean, num_warps=4)
    return out


def huber_loss_out(self, target, reduction=1, delta=1.0, *, out):
    if reduction != 0:
        out.copy_(huber_loss(self, target, reduction, delta))
        return out
    if out.is_contiguous():
        _each(self, target, delta, out)
    else:
        tmp = torch.empty(out.shape, dtype=out.dtype, device=out.device)
        _each(self, target, delta, tmp)
        out.copy_(tmp)
    return out

