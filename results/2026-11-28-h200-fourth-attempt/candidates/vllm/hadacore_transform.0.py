import torch
import triton
import triton.language as tl


@triton.jit
def _hadamard(N: tl.constexpr, SUB: tl.constexpr, dt: tl.constexpr):
    # N x N (at most 256), Sylvester blocks of SUB x SUB along the diagonal, entries 1 and -1, made of their bits
    i = tl.arange(0, N)[:, None]
    j = tl.arange(0, N)[None, :]
    v = (i & j) & (SUB - 1)
    v = (v ^ (v >> 4)) & 15
    sign = ((v * 0 + 27030) >> v) << 15  # bit v of 0x6996 is the parity of v
    if dt == tl.bfloat16:
        s = (sign & 0x8000) | 0x3F80
    else:
        s = (sign & 0x8000) | 0x3C00
    if SUB < N:
        s = tl.where((i // SUB) == (j // SUB), s, 0)
    return s.to(tl.int16).to(dt, bitcast=True)


@triton.jit
def _small_kernel(X, rows, nprog, scale, C: tl.constexpr, SUB: tl.constexpr, R: tl.constexpr):
    h = _hadamard(C, SUB, X.dtype.element_ty)
    ntiles = (rows - 1) // R + 1
    c = tl.arange(0, C)
    for tile in range(tl.program_id(0), ntiles, nprog):
        r = tile * R + tl.arange(0, R)
        m = (r < rows)[:, None]
        p = X + (r.to(tl.int64) * C)[:, None] + c[None, :]
        x = tl.load(p, mask=m, other=0.0)
        y = tl.dot(x, h) * scale
        tl.store(p, y.to(X.dtype.element_ty), mask=m)


@triton.jit
def _big_kernel(X, rows, nprog, sa, sb, A: tl.constexpr, B: tl.constexpr):
    # n = A * B: index i * B + j, the matrix is the Kronecker product of H_A and H_B.
    # H_A comes first: what it gives is then the left operand of the second product and stays in registers
    ha = _hadamard(A, A, X.dtype.element_ty)
    if A == B:
        hb = ha
    else:
        hb = _hadamard(B, B, X.dtype.element_ty)
    offs = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    for row in range(tl.program_id(0), rows, nprog):
        p = X + row.to(tl.int64) * (A * B) + offs
        x = tl.load(p)
        y = (tl.dot(ha, x) * sa).to(X.dtype.element_ty)
        z = tl.dot(y, hb) * sb
        tl.store(p, z.to(X.dtype.element_ty))


@triton.jit
def _two_kernel(X, rows, nprog, sa, sb, A: tl.constexpr, B: tl.constexpr):
    # n = 2 * A * B
    ha = _hadamard(A, A, X.dtype.element_ty)
    if A == B:
        hb = ha
    else:
        hb = _hadamard(B, B, X.dtype.element_ty)
    offs = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    for row in range(tl.program_id(0), rows, nprog):
        p = X + row.to(tl.int64) * (2 * A * B) + offs
        q = p + A * B
        x0 = tl.load(p).to(tl.float32)
        x1 = tl.load(q).to(tl.float32)
        u = ((x0 + x1) * 0.7071067811865476).to(X.dtype.element_ty)
        v = ((x0 - x1) * 0.7071067811865476).to(X.dtype.element_ty)
        y = (tl.dot(ha, u) * sa).to(X.dtype.element_ty)
        z = tl.dot(y, hb) * sb
        tl.store(p, z.to(X.dtype.element_ty))
        y = (tl.dot(ha, v) * sa).to(X.dtype.element_ty)
        z = tl.dot(y, hb) * sb
        tl.store(q, z.to(X.dtype.element_ty))


@triton.jit
def _four_kernel(X, rows, nprog, s, A: tl.constexpr):
    # n = 4 * A * A: butterflies for the factor 4
    h = _hadamard(A, A, X.dtype.element_ty)
    ty = X.dtype.element_ty
    offs = tl.arange(0, A)[:, None] * A + tl.arange(0, A)[None, :]
    for row in range(tl.program_id(0), rows, nprog):
        p = X + row.to(tl.int64) * (4 * A * A) + offs
        x0 = tl.load(p).to(tl.float32)
        x1 = tl.load(p + A * A).to(tl.float32)
        x2 = tl.load(p + 2 * A * A).to(tl.float32)
        x3 = tl.load(p + 3 * A * A).to(tl.float32)
        a = (x0 + x1) * 0.5
        b = (x0 - x1) * 0.5
        c = (x2 + x3) * 0.5
        d = (x2 - x3) * 0.5
        y = (tl.dot(h, (a + c).to(ty)) * s).to(ty)
        tl.store(p, (tl.dot(y, h) * s).to(ty))
        y = (tl.dot(h, (b + d).to(ty)) * s).to(ty)
        tl.store(p + A * A, (tl.dot(y, h) * s).to(ty))
        y = (tl.dot(h, (a - c).to(ty)) * s).to(ty)
        tl.store(p + 2 * A * A, (tl.dot(y, h) * s).to(ty))
        y = (tl.dot(h, (b - d).to(ty)) * s).to(ty)
        tl.store(p + 3 * A * A, (tl.dot(y, h) * s).to(ty))


def hadacore_transform(x, inplace=True):
    n = x.shape[-1]
    total = x.numel()
    if total == 0:
        return x
    if n <= 128:
        C = max(n, 16)
        rows = total // C
        # small tiles: two programs and more fit on an SM beside the matrix, each with tiles on the way
        R = 128 if C <= 32 else 64
        ntiles = triton.cdiv(rows, R)
        nprog = min(ntiles, 132 * (2 if C == 128 else 4))
        _small_kernel[(nprog,)](x, rows, nprog, float(n) ** -0.5, C=C, SUB=n, R=R,
                                num_warps=4, num_stages=3 if C == 128 else 2)
        return x
    rows = total // n
    L = n.bit_length() - 1
    if n == 16384:
        # half the products of 128 x 128 ones, and two programs fit on an SM
        nprog = min(rows, 132 * 2)
        _four_kernel[(nprog,)](x, rows, nprog, 0.125, A=64, num_warps=4, num_stages=1)
        return x
    if L <= 14:
        A = 2 ** ((L + 1) // 2)
        B = n // A
        if n <= 4096:
            # as many as fit on the SMs at once
            nprog = min(rows, 132 * (5 if n == 4096 else 8))
            nw, ns = 4, 2
        elif n <= 8192:
            nprog = min(rows, 132 * 4)
            nw, ns = 4, 2
        else:
            nprog = min(rows, 132 * 2)
            nw, ns = 8, 2
        _big_kernel[(nprog,)](x, rows, nprog, float(A) ** -0.5, float(B) ** -0.5, A=A, B=B,
                              num_warps=nw, num_stages=ns)
    else:
        A = 128
        B = n // 256
        nprog = min(rows, 132)
        _two_kernel[(nprog,)](x, rows, nprog, float(A) ** -0.5, float(B) ** -0.5, A=A, B=B,
                              num_warps=8, num_stages=1)
    return x

