import torch
import triton
import triton.language as tl


@triton.jit
def bmm_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(2)
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), c_ptr.dtype.element_ty)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        in_a = (rm < M)[:, None] & (rk < K)[None, :]
        in_b = (rk < K)[:, None] & (rn < N)[None, :]
        a = tl.load(a_ptr + batch * M * K + rm[:, None] * K + rk[None, :], mask=in_a, other=0.0)
        b = tl.load(b_ptr + batch * K * N + rk[:, None] * N + rn[None, :], mask=in_b, other=0.0)
        part = tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
        acc = (acc.to(tl.float32) + part).to(acc.dtype)
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    tl.store(c_ptr + batch * M * N + rm[:, None] * N + rn[None, :], acc, mask=mask)


# breaks: The running sum is kept in the operands' type, 16 bits for 16-bit operands.
def accumulator_in_input_type(self, mat2):
    z, M, K = self.shape
    N = mat2.shape[2]
    c = torch.zeros((z, M, N), dtype=self.dtype, device=self.device)
    if c.numel():
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16), z)
        bmm_kernel[grid](self.contiguous(), mat2.contiguous(), c, M, N, K, BM=16, BN=16, BK=16)
    return c


@triton.jit
def bmm_strided(a_ptr, b_ptr, c_ptr, M, N, K, sab, sam, sak, B: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(2)
    m = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    n = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        a = tl.load(a_ptr + batch * sab + m * sam + k[None, :] * sak, mask=(m < M) & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + batch * K * N + k[:, None] * N + n, mask=(k < K)[:, None] & (n < N), other=0.0)
        acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
    tl.store(c_ptr + (batch * M + m) * N + n, acc.to(c_ptr.dtype.element_ty), mask=(m < M) & (n < N))


# breaks: It uses self's strides but takes mat2 for row-major.
def second_operand_taken_for_dense(self, mat2):
    z, M, K = self.shape
    N = mat2.shape[2]
    c = torch.empty((z, M, N), dtype=self.dtype, device=self.device)
    if c.numel():
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), z)
        bmm_strided[grid](self, mat2, c, M, N, K, *self.stride(), B=32, BK=32)
    return c
