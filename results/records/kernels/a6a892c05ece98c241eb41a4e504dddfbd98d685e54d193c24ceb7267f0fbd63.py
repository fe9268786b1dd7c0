import torch
import triton
import triton.language as tl


@triton.jit
def _rows_kernel(src, dst, idx, nrows, units, ncb, W: tl.constexpr, R: tl.constexpr, BC: tl.constexpr,
                 BIG: tl.constexpr):
    if W == 4:
        s = src.to(tl.pointer_type(tl.int32))
        d = dst.to(tl.pointer_type(tl.int32))
    elif W == 2:
        s = src.to(tl.pointer_type(tl.int16))
        d = dst.to(tl.pointer_type(tl.int16))
    else:
        s = src.to(tl.pointer_type(tl.int8))
        d = dst.to(tl.pointer_type(tl.int8))
    pid = tl.program_id(0)
    if BIG:
        # places in a row, or row numbers, need 64 bits
        pid = pid.to(tl.int64)
    rb = pid // ncb
    cb = pid - rb * ncb
    r = rb * R + tl.arange(0, R)
    rm = r < nrows
    i = tl.load(idx + r, mask=rm, other=0).to(tl.int64)
    c = cb * BC + tl.arange(0, BC)
    m = rm[:, None] & (c < units)[None, :]
    x = tl.load(s + (i * units)[:, None] + c[None, :], mask=m, other=0)
    tl.store(d + (r.to(tl.int64) * units)[:, None] + c[None, :], x, mask=m)


def shuffle_rows(input_tensor, dst2src_map, output_tensor):
    n = output_tensor.shape[0]
    cols = output_tensor.shape[1]
    if n == 0 or cols == 0:
        return None
    nbytes = cols * input_tensor.element_size()
    bits = nbytes | input_tensor.data_ptr() | output_tensor.data_ptr()
    W = 4 if bits % 4 == 0 else (2 if bits % 2 == 0 else 1)
    a = input_tensor.view(torch.uint8)
    b = output_tensor.view(torch.uint8)
    units = nbytes // W
    BC = 1024
    while BC > 128 and units % BC != 0:
        BC //= 2
    if units % BC != 0:
        BC = min(1024, triton.next_power_of_2(units))
    R = max(1, 4096 // BC)
    if n < R and units > BC:
        # few long rows: longer stretches of them instead of more rows
        R = triton.next_power_of_2(n)
        BC = min(4096 // R, triton.next_power_of_2(units))
    ncb = triton.cdiv(units, BC)
    big = units >= 2 ** 31 - 2 ** 14 or n >= 2 ** 31 - 2 ** 14
    _rows_kernel[(triton.cdiv(n, R) * ncb,)](a, b, dst2src_map, n, units, ncb, W=W, R=R, BC=BC, BIG=big, num_warps=4)
    return None
