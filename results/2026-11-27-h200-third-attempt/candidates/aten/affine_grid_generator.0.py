import torch
import triton
import triton.language as tl


@triton.jit
def _pos(i, n, ALIGN: tl.constexpr, F64: tl.constexpr):
    # i: int32 vector, n: int scalar
    if ALIGN:
        num = 2 * i - (n - 1)
        den = tl.maximum(n - 1, 1)
    else:
        num = 2 * i + 1 - n
        den = n
    if F64:
        r = num.to(tl.float64) / (den + i * 0).to(tl.float64)
    else:
        r = tl.div_rn(num.to(tl.float32), (den + i * 0).to(tl.float32))
    return r


@triton.jit
def _grid_kernel(
    th_ptr, out_ptr, s0, s1, s2, D, H, W, row_blocks, col_blocks,
    K: tl.constexpr, R: tl.constexpr, E: tl.constexpr,
    ALIGN: tl.constexpr, F64: tl.constexpr,
):
    pid = tl.program_id(0)
    cb = pid % col_blocks
    t = pid // col_blocks
    rb = t % row_blocks
    n = (t // row_blocks).to(tl.int64)
    rows_total = D * H
    row = rb * R + tl.arange(0, R)
    e = cb * E + tl.arange(0, E)
    et = W * K
    j = e // K
    c = e - j * K
    x = _pos(j, W, ALIGN, F64)
    iy = row % H
    y = _pos(iy, H, ALIGN, F64)
    tp = th_ptr + n * s0
    s2 = tl.cast(s2, tl.int64)  # twice a stride of 2**30 and more leaves 32 bits
    cm = e < et
    trow = tp + c.to(tl.int64) * s1
    if F64:
        a0 = tl.load(trow, mask=cm, other=0.0)
        a1 = tl.load(trow + s2, mask=cm, other=0.0)
        a2 = tl.load(trow + 2 * s2, mask=cm, other=0.0)
    else:
        a0 = tl.load(trow, mask=cm, other=0.0).to(tl.float32)
        a1 = tl.load(trow + s2, mask=cm, other=0.0).to(tl.float32)
        a2 = tl.load(trow + 2 * s2, mask=cm, other=0.0).to(tl.float32)
    if K == 2:
        px = a0 * x + a2
        v = px[None, :] + a1[None, :] * y[:, None]
    else:
        if F64:
            a3 = tl.load(trow + 3 * s2, mask=cm, other=0.0)
        else:
            a3 = tl.load(trow + 3 * s2, mask=cm, other=0.0).to(tl.float32)
        z = _pos(row // H, D, ALIGN, F64)
        px = a0 * x + a3
        v = (px[None, :] + a1[None, :] * y[:, None]) + a2[None, :] * z[:, None]
    o = out_ptr + (n * rows_total + rb * R) * et
    offs = tl.arange(0, R).to(tl.int64)[:, None] * et + e[None, :]
    m = (row < rows_total)[:, None] & cm[None, :]
    tl.store(o + offs, v.to(out_ptr.dtype.element_ty), mask=m)


def _pow2_floor_div(n):
    return n & (-n)


def _run(theta, size, align, out):
    N = int(size[0])
    if len(size) == 4:
        K, D, H, W = 2, 1, int(size[2]), int(size[3])
    else:
        K, D, H, W = 3, int(size[2]), int(size[3]), int(size[4])
    et = K * W
    rows = D * H
    total = N * rows * et
    if total == 0:
        return
    d = _pow2_floor_div(et)
    if d >= 128:
        E = min(d, 512)
    else:
        E = min(triton.next_power_of_2(et), 512)
    tile = 4096 if total >= (1 << 22) else 512
    R = max(1, min(tile // E, triton.next_power_of_2(rows)))
    rb = triton.cdiv(rows, R)
    cb = triton.cdiv(et, E)
    _grid_kernel[(N * rb * cb,)](
        theta, out, theta.stride(0), theta.stride(1), theta.stride(2), D, H, W, rb, cb,
        K=K, R=R, E=E, ALIGN=bool(align), F64=(theta.dtype == torch.float64),
        num_warps=4 if R * E >= 2048 else 2,
    )


def _shape(size):
    if len(size) == 4:
        return (int(size[0]), int(size[2]), int(size[3]), 2)
    return (int(size[0]), int(size[2]), int(size[3]), int(size[4]), 3)


def affine_grid_generator(theta, size, align_corners):
    out = torch.empty(_shape(size), dtype=theta.dtype, device=theta.device)
    _run(theta, size, align_corners, out)
    return out


def affine_grid_generator_out(theta, size, align_corners, *, out):
    if out.is_contiguous():
        _run(theta, size, align_corners, out)
    else:
        tmp = torch.empty(_shape(size), dtype=theta.dtype, device=theta.device)
        _run(theta, size, align_corners, tmp)
        out.copy_(tmp)
    return out

