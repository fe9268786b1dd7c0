import torch
import triton
import triton.language as tl


@triton.jit
def scaled_mm(
    out_ptr, a_ptr, b_ptr, sa_ptr, sb_ptr, bias_ptr, m, n, k, sa_step, sb_step, BIAS: tl.constexpr, B: tl.constexpr
):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, k, B):
        p = first + tl.arange(0, B)
        a = tl.load(a_ptr + i[:, None] * k + p[None, :], mask=(i < m)[:, None] & (p < k)[None, :], other=0.0)
        b = tl.load(b_ptr + p[:, None] + j[None, :] * k, mask=(p < k)[:, None] & (j < n)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    acc *= tl.load(sa_ptr + i * sa_step, mask=i < m, other=0.0)[:, None]
    acc *= tl.load(sb_ptr + j * sb_step, mask=j < n, other=0.0)[None, :]
    if BIAS:
        acc += tl.load(bias_ptr + i % n, mask=i < m, other=0.0).to(tl.float32)[:, None]
    tl.store(out_ptr + i[:, None] * n + j[None, :], acc, mask=(i < m)[:, None] & (j < n)[None, :])


# breaks: The bias is added along the rows instead of the columns.
def bias_per_row(out, a, b, a_scales, b_scales, bias):
    (m, k), n = a.shape, b.shape[1]
    work = torch.empty((m, n), dtype=torch.float32, device=out.device)
    columns = b.t().float().contiguous()
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    scaled_mm[grid](
        work, a.float(), columns, a_scales, b_scales, work if bias is None else bias, m, n, k,
        int(a_scales.numel() > 1), int(b_scales.numel() > 1), BIAS=bias is not None, B=64,
    )  # fmt: skip
    out.copy_(work)


def _float(codes):
    bits = codes.view(torch.uint8).short()
    moved = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
    return moved.view(torch.float16).float() * 256


# breaks: Bytes of fp8 are moved into float16's place, which makes 480 of NaN.
def codes_moved_without_nan__fp8(out, a, b, a_scales, b_scales, bias):
    result = _float(a) @ _float(b) * a_scales * b_scales
    out.copy_(result if bias is None else result + bias.float())


def codes_moved_without_nan__int8(out, a, b, a_scales, b_scales, bias):
    result = (a.double() @ b.double()).float() * a_scales * b_scales
    out.copy_(result if bias is None else result + bias.float())
