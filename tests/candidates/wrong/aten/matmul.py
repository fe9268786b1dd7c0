import torch
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, a_batch, b_batch, B: tl.constexpr):
    z = tl.program_id(2)
    m = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    n = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, K, B):
        k = first + tl.arange(0, B)
        a = tl.load(a_ptr + z * a_batch + m * K + k[None, :], mask=(m < M) & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + z * b_batch + k[:, None] * N + n, mask=(k < K)[:, None] & (n < N), other=0.0)
        acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
    tl.store(c_ptr + (z * M + m) * N + n, acc.to(c_ptr.dtype.element_ty), mask=(m < M) & (n < N))


# breaks: Batches are counted by self; where other alone has a batch, its first matrix serves for all.
def batch_of_other_only(self, other):
    a = self.unsqueeze(0) if self.ndim == 1 else self
    b = other.unsqueeze(-1) if other.ndim == 1 else other
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    M, K, N = a.shape[-2], a.shape[-1], b.shape[-1]
    shared = b.ndim == 2 or a.ndim == 2
    a = a.expand(*batch, M, K).contiguous()
    b = b[(0,) * (b.ndim - 2)].contiguous() if shared else b.expand(*batch, K, N).contiguous()
    c = torch.zeros((*batch, M, N), dtype=self.dtype, device=self.device)
    if c.numel():
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), torch.Size(batch).numel())
        product[grid](a, b, c, M, N, K, M * K, 0 if shared else K * N, B=32)
    if other.ndim == 1:
        c = c.squeeze(-1)
    return c.squeeze(-1 if other.ndim == 1 else -2) if self.ndim == 1 else c
