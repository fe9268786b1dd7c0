import torch
import triton
import triton.language as tl


@triton.jit
def unfold(
    x_ptr, y_ptr, total, h, w, kh, kw, lh, lw, dh, dw, ph, pw, stride, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place, row = i % (lh * lw), i // (lh * lw)
    place_y, place_x = place // lw, place % lw
    kx, ky, plane = row % kw, (row // kw) % kh, row // (kh * kw)
    y = place_y * stride - ph + ky * dh
    x = place_x * stride - pw + kx * dw
    inside = (y >= 0) & (y < h) & (x >= 0) & (x < w) & (i < total)
    v = tl.load(x_ptr + (plane * h + y) * w + x, mask=inside, other=0)
    tl.store(y_ptr + i, v, mask=i < total)


# breaks: The first stride counts for rows and columns, right where both are equal.
def one_stride_for_both(self, kernel_size, dilation, padding, stride, *, out=None):
    x = self.contiguous()
    c, h, w = x.shape[-3:]
    (kh, kw), (dh, dw), (ph, pw) = kernel_size, dilation, padding
    lh = (h + 2 * ph - dh * (kh - 1) - 1) // stride[0] + 1
    lw = (w + 2 * pw - dw * (kw - 1) - 1) // stride[1] + 1
    if out is None:
        out = torch.empty([*x.shape[:-3], c * kh * kw, lh * lw], dtype=x.dtype, device=x.device)
    n = out.numel()
    if n:
        sizes = (h, w, kh, kw, lh, lw, dh, dw, ph, pw, stride[0])
        unfold[(triton.cdiv(n, 2048),)](x, out, n, *sizes, BLOCK=2048)
    return out
