import struct

import torch
import triton
import triton.language as tl


@triton.jit
def _to(x, ty: tl.constexpr, BOOL: tl.constexpr):
    if BOOL:
        return (x != 0).to(tl.uint8)
    else:
        if ty == tl.float64:
            return x.to(tl.float64)
        elif ty == tl.float32:
            return x.to(tl.float32)
        elif ty == tl.float16 or ty == tl.bfloat16:
            return x.to(tl.float32).to(ty)
        else:
            return x.to(tl.int64).to(ty)


@triton.jit(do_not_specialize=["v"])
def _flat_scalar(o_ptr, v, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    idx = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.full([BLOCK], v, o_ptr.dtype.element_ty)
    if EVEN:
        tl.store(o_ptr + idx, x)
    else:
        tl.store(o_ptr + idx, x, mask=idx < n)


@triton.jit
def _flat_tensor(o_ptr, v_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, BOOL: tl.constexpr):
    idx = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = _to(tl.load(v_ptr), o_ptr.dtype.element_ty, BOOL)
    if BOOL == 2:  # the imaginary part of a complex number lies behind the real one
        v = v | _to(tl.load(v_ptr + 1), o_ptr.dtype.element_ty, BOOL)
    x = tl.full([BLOCK], v, o_ptr.dtype.element_ty)
    if EVEN:
        tl.store(o_ptr + idx, x)
    else:
        tl.store(o_ptr + idx, x, mask=idx < n)


@triton.jit
def _tile_put(
    o_ptr, v, off, L, J, sL, sJ, n1, n2, n3, s0, s1, s2, s3, tiles_l, tiles_j,
    BJ: tl.constexpr, BL: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    tile_l = pid % tiles_l
    t = pid // tiles_l
    tile_j = t % tiles_j
    t = t // tiles_j
    i3 = t % n3
    t = t // n3
    i2 = t % n2
    t = t // n2
    i1 = t % n1
    i0 = t // n1
    dst = o_ptr + off + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3
    l = tile_l * BL + tl.arange(0, BL)
    j = tile_j * BJ + tl.arange(0, BJ)
    m = (j < J)[:, None] & (l < L)[None, :]
    x = tl.full([BJ, BL], v, o_ptr.dtype.element_ty)
    tl.store(dst + j[:, None] * sJ + l[None, :] * sL, x, mask=m)


@triton.jit(do_not_specialize=["v"])
def _tile_scalar(
    o_ptr, v, off, L, J, sL, sJ, n1, n2, n3, s0, s1, s2, s3, tiles_l, tiles_j,
    BJ: tl.constexpr, BL: tl.constexpr,
):
    _tile_put(o_ptr, v, off, L, J, sL, sJ, n1, n2, n3, s0, s1, s2, s3, tiles_l, tiles_j, BJ, BL)


@triton.jit
def _tile_tensor(
    o_ptr, v_ptr, off, L, J, sL, sJ, n1, n2, n3, s0, s1, s2, s3, tiles_l, tiles_j,
    BJ: tl.constexpr, BL: tl.constexpr, BOOL: tl.constexpr,
):
    v = _to(tl.load(v_ptr), o_ptr.dtype.element_ty, BOOL)
    if BOOL == 2:  # the imaginary part of a complex number lies behind the real one
        v = v | _to(tl.load(v_ptr + 1), o_ptr.dtype.element_ty, BOOL)
    _tile_put(o_ptr, v, off, L, J, sL, sJ, n1, n2, n3, s0, s1, s2, s3, tiles_l, tiles_j, BJ, BL)


def _dims(t):
    """(size, stride) by falling stride, joined where memory goes on without a gap"""
    dims = sorted(((st, sz) for st, sz in zip(t.stride(), t.shape) if sz != 1), reverse=True)
    out = []
    for st, sz in dims:
        if out and out[-1][1] == st * sz:
            out[-1] = (out[-1][0] * sz, st)
        else:
            out.append((sz, st))
    return out or [(1, 1)]


def _launch_tiles(o, v, off, last, jd, batch, is_tensor, is_bool):
    if len(batch) > 4:
        sz, s = batch[0]
        for i in range(sz):
            _launch_tiles(o, v, off + i * s, last, jd, batch[1:], is_tensor, is_bool)
        return
    L, sL = last
    J, sJ = jd
    b = [(1, 0)] * (4 - len(batch)) + list(batch)
    BL = min(triton.next_power_of_2(L), 1024)
    BJ = min(triton.next_power_of_2(J), max(1, 1024 // BL))
    tiles_l, tiles_j = triton.cdiv(L, BL), triton.cdiv(J, BJ)
    grid = tiles_l * tiles_j
    for sz, _ in b:
        grid *= sz
    args = (
        o, v, off, L, J, sL, sJ, b[1][0], b[2][0], b[3][0],
        b[0][1], b[1][1], b[2][1], b[3][1], tiles_l, tiles_j,
    )
    if is_tensor:
        _tile_tensor[(grid,)](*args, BJ=BJ, BL=BL, BOOL=is_bool, num_warps=4)
    else:
        _tile_scalar[(grid,)](*args, BJ=BJ, BL=BL, num_warps=4)


def _fill(o, v, is_tensor, is_bool):
    n = o.numel()
    if n == 0:
        return
    dims = _dims(o)
    if len(dims) == 1 and dims[0][1] == 1:
        if n <= (1 << 16):
            BLOCK = 256
        else:
            BLOCK = max(1024, 8192 // o.element_size())
        grid = (triton.cdiv(n, BLOCK),)
        even = n % BLOCK == 0
        if is_tensor:
            _flat_tensor[grid](o, v, n, BLOCK=BLOCK, EVEN=even, BOOL=is_bool, num_warps=4)
        else:
            _flat_scalar[grid](o, v, n, BLOCK=BLOCK, EVEN=even, num_warps=4)
        return
    last = dims[-1]
    rest = dims[:-1]
    if rest:
        jd = rest[-1]
        batch = rest[:-1]
    else:
        jd = (1, 0)
        batch = []
    _launch_tiles(o, v, 0, last, jd, batch, is_tensor, is_bool)


_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def _wrap64(v):
    v &= (1 << 64) - 1
    return v - (1 << 64) if v >= (1 << 63) else v


def _real(x):
    return x.real if isinstance(x, complex) else x


def _f32_bits(x):
    try:
        return struct.pack("<f", x)
    except OverflowError:
        return struct.pack("<f", float("inf") if x > 0 else float("-inf"))


def fill__Scalar(self, value):
    if self.is_conj():
        fill__Scalar(self.conj(), complex(value).conjugate())
        return self
    if self.is_neg():
        fill__Scalar(torch._neg_view(self), -value)
        return self
    dt = self.dtype
    if dt == torch.bool:
        _fill(self.view(torch.uint8), 1 if value != 0 else 0, False, False)
    elif dt in _FLOATS:
        _fill(self, float(_real(value)), False, False)
    elif dt == torch.float64:
        bits = int.from_bytes(struct.pack("<d", float(_real(value))), "little")
        _fill(self.view(torch.int64), _wrap64(bits), False, False)
    elif dt == torch.complex64:
        c = complex(value)
        bits = int.from_bytes(_f32_bits(c.real) + _f32_bits(c.imag), "little")
        r = torch.view_as_real(self)
        if self.data_ptr() % 8 == 0:
            _fill(self.view(torch.int64), _wrap64(bits), False, False)
        else:
            _fill(r.select(-1, 0), c.real, False, False)
            _fill(r.select(-1, 1), c.imag, False, False)
    elif dt == torch.complex128:
        c = complex(value)
        r = torch.view_as_real(self)
        fill__Scalar(r.select(-1, 0), c.real)
        fill__Scalar(r.select(-1, 1), c.imag)
    else:
        v = int(_real(value))
        bits = dt.itemsize * 8
        v &= (1 << bits) - 1
        if v >= (1 << (bits - 1)) and (dt.is_signed or bits == 64):
            v -= 1 << bits
        _fill(self, v, False, False)
    return self


def fill__Tensor(self, value):
    if value.is_conj() or value.is_neg():
        value = torch.empty(value.shape, dtype=value.dtype, device=value.device).copy_(value)
    if self.is_conj():
        v = torch.empty(value.shape, dtype=self.dtype, device=self.device).copy_(value)
        w = torch.empty(value.shape, dtype=self.dtype, device=self.device).copy_(v.conj())
        fill__Tensor(self.conj(), w)
        return self
    if self.is_neg():
        w = torch.empty(value.shape, dtype=value.dtype, device=value.device).copy_(torch._neg_view(value))
        fill__Tensor(torch._neg_view(self), w)
        return self
    dt = self.dtype
    if dt.is_complex:
        r = torch.view_as_real(self)
        c = torch.empty(value.shape, dtype=dt, device=value.device).copy_(value)
        cr = torch.view_as_real(c)
        _fill(r.select(-1, 0), cr.select(-1, 0), True, False)
        _fill(r.select(-1, 1), cr.select(-1, 1), True, False)
        return self
    parts = value.dtype.is_complex
    if parts:
        value = torch.view_as_real(value).select(-1, 0)
    if value.dtype == torch.bool:
        value = value.view(torch.uint8)
    if dt == torch.bool:
        _fill(self.view(torch.uint8), value, True, 2 if parts else 1)
    else:
        _fill(self, value, True, False)
    return self
