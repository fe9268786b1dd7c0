import torch
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, HAS_BIAS: tl.constexpr, B: tl.constexpr):
    m = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, K, B):
        k = first + tl.arange(0, B)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n < N)[None, :] & (k < K)[:, None], other=0.0)
        acc += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
        if HAS_BIAS:
            acc += tl.load(b_ptr + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    tl.store(
        y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :]
    )


# breaks: The bias is added in the loop over the depth, once per tile.
def bias_in_every_step(input, weight, bias=None):
    vector = weight.ndim == 1
    w = weight.reshape(1, -1) if vector else weight
    x = input.contiguous()
    K, N = x.shape[-1], w.shape[0]
    M = x.shape[:-1].numel()
    y = torch.zeros((*x.shape[:-1], N), dtype=x.dtype, device=x.device)
    if K == 0 and bias is not None:
        y.copy_(bias.expand(y.shape))
    elif y.numel():
        b = x if bias is None else bias.contiguous()
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
        linear_kernel[grid](x, w.contiguous(), b, y, M, N, K, HAS_BIAS=bias is not None, B=32)
    return y.squeeze(-1) if vector else y
