"""add.Tensor and add.Scalar: self + alpha * other with broadcasting and type promotion.

Sums are formed in float32 (float64 for float64, by parts for complex numbers, the integer's own width for integers)
and rounded once when stored.
"""

import torch
import triton
import triton.language as tl

_WIDE = {
    torch.float64: tl.float64,
    torch.int64: tl.int64,
    torch.int32: tl.int32,
    torch.int16: tl.int32,
    torch.int8: tl.int32,
    torch.uint8: tl.int32,
    torch.bool: tl.int32,
}


@triton.jit
def _sum(a, b, alpha, WIDE: tl.constexpr, BOOL: tl.constexpr):
    if tl.float64 == WIDE:
        alpha = tl.load(alpha)
    total = a.to(WIDE) + b.to(WIDE) * alpha
    if BOOL:
        total = (total != 0).to(WIDE)
    return total


@triton.jit
def _add_flat(a_ptr, b_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr, WIDE: tl.constexpr, BOOL: tl.constexpr):
    """Both operands and the sum lie in the same order without gaps."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    total = _sum(tl.load(a_ptr + i, mask=inside), tl.load(b_ptr + i, mask=inside), alpha, WIDE, BOOL)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _add_strided(
    a_ptr, b_ptr, out_ptr, n, alpha, sizes, a_strides, b_strides,
    DIMS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr, BOOL: tl.constexpr,
):  # fmt: skip
    """Operands of any strides, 0 where a dimension is broadcast; the sum is contiguous."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    rest = i
    a_at = tl.zeros((BLOCK,), tl.int64)
    b_at = tl.zeros((BLOCK,), tl.int64)
    for back in tl.static_range(DIMS):
        index = rest % sizes[DIMS - 1 - back]
        rest = rest // sizes[DIMS - 1 - back]
        a_at += index * a_strides[DIMS - 1 - back]
        b_at += index * b_strides[DIMS - 1 - back]
    total = _sum(tl.load(a_ptr + a_at, mask=inside), tl.load(b_ptr + b_at, mask=inside), alpha, WIDE, BOOL)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _add_number(
    a_ptr, out_ptr, n, number, sizes, a_strides,
    DIMS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr, BOOL: tl.constexpr,
):  # fmt: skip
    """A tensor of any strides plus one number; the sum is contiguous. DIMS = 0: the tensor is contiguous, too."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a_at = i
    if DIMS > 0:
        rest = i
        a_at = tl.zeros((BLOCK,), tl.int64)
        for back in tl.static_range(DIMS):
            a_at += rest % sizes[DIMS - 1 - back] * a_strides[DIMS - 1 - back]
            rest = rest // sizes[DIMS - 1 - back]
    if tl.float64 == WIDE:
        number = tl.load(number)
    total = tl.load(a_ptr + a_at, mask=inside).to(WIDE) + number
    if BOOL:
        total = (total != 0).to(WIDE)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _add_complex(a_ptr, b_ptr, out_ptr, n, alpha_real, alpha_imaginary, BLOCK: tl.constexpr):
    """Operands and sum lie in the same order without gaps, each element a real part and an imaginary one."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    real = tl.load(b_ptr + 2 * i, mask=inside)
    imaginary = tl.load(b_ptr + 2 * i + 1, mask=inside)
    a_real = tl.load(a_ptr + 2 * i, mask=inside)
    a_imaginary = tl.load(a_ptr + 2 * i + 1, mask=inside)
    tl.store(out_ptr + 2 * i, a_real + (real * alpha_real - imaginary * alpha_imaginary), mask=inside)
    tl.store(out_ptr + 2 * i + 1, a_imaginary + (imaginary * alpha_real + real * alpha_imaginary), mask=inside)


def _complex_sum(a, b, alpha, out):
    """``a`` and ``b`` of the shape of ``out``, of any dtype and strides."""
    alpha, block = complex(alpha), _block(out)
    parts = [torch.view_as_real(each.to(out.dtype).contiguous()) for each in (a, b)]
    _add_complex[(triton.cdiv(out.numel(), block),)](
        *parts, torch.view_as_real(out), out.numel(), alpha.real, alpha.imag, BLOCK=block
    )  # fmt: skip
    return out


def _bytes_if_bool(x):
    """Triton has no pointers to bool; 0 and 1 as bytes are the same memory."""
    return x.view(torch.uint8) if x.dtype == torch.bool else x


def _block(x):
    return 1024 if x.is_cuda else 1 << 16


def add_Tensor(self, other, *, alpha=1):
    """self + alpha * other: broadcast, in the promoted dtype, contiguous."""
    dtype = torch.result_type(self, other)
    a, b = torch.broadcast_tensors(self, other)
    out = torch.empty(a.shape, dtype=dtype, device=self.device)
    n = out.numel()
    if n == 0:
        return out
    if dtype.is_complex:
        return _complex_sum(a, b, alpha, out)
    block = _block(out)
    grid = (triton.cdiv(n, block),)
    meta = {"BLOCK": block, "WIDE": _WIDE.get(dtype, tl.float32), "BOOL": dtype == torch.bool}
    a, b, y = _bytes_if_bool(a), _bytes_if_bool(b), _bytes_if_bool(out)
    alpha = _number(alpha, dtype, self.device)
    if a.is_contiguous() and b.is_contiguous():
        _add_flat[grid](a, b, y, n, alpha, **meta)
    else:
        _add_strided[grid](a, b, y, n, alpha, tuple(a.shape), a.stride(), b.stride(), DIMS=a.ndim, **meta)
    return out


def add_Scalar(self, other, alpha=1):
    """self + alpha * other for a number ``other``, in the promoted dtype, contiguous."""
    dtype = torch.result_type(self, other)
    out = torch.empty(self.shape, dtype=dtype, device=self.device)
    n = out.numel()
    if n == 0:
        return out
    if dtype.is_complex:
        # torch.full refuses what complex64 does not hold; rounded it is infinite.
        number = torch.full((), other, dtype=torch.complex128, device=self.device).to(dtype)
        return _complex_sum(self, number.expand(out.shape), alpha, out)
    a, y = _bytes_if_bool(self), _bytes_if_bool(out)
    block = _block(out)
    _add_number[(triton.cdiv(n, block),)](
        a, y, n, _number(alpha * other, dtype, self.device), tuple(a.shape), a.stride(),
        DIMS=0 if a.is_contiguous() else a.ndim,
        BLOCK=block, WIDE=_WIDE.get(dtype, tl.float32), BOOL=dtype == torch.bool,
    )  # fmt: skip
    return out


def _number(value, dtype, device):
    """``value`` as a kernel takes it: integers wrapped to 64 bits; as an argument it would be float32 at most."""
    if dtype == torch.float64:
        return torch.full((), value, dtype=dtype, device=device)
    return float(value) if dtype.is_floating_point else (int(value) + (1 << 63)) % (1 << 64) - (1 << 63)
