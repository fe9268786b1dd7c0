import torch
import triton
import triton.language as tl


@triton.jit
def gemm_beta_in_single_precision(
    a_ptrs, b_ptrs, c_ptrs, alpha_ptr, m, n, k, a_i, a_p, b_p, b_j, ldc, beta_ptr, READ: tl.constexpr, B: tl.constexpr
):
    j = tl.program_id(1) * B + tl.arange(0, B)
    i = tl.program_id(0) * B + tl.arange(0, B)
    z = tl.program_id(2)
    c_ptr = tl.load(c_ptrs + z).to(tl.pointer_type(tl.float64))
    acc = tl.zeros((B, B), tl.float64)
    if k > 0:
        a_ptr = tl.load(a_ptrs + z).to(tl.pointer_type(tl.float64))
        b_ptr = tl.load(b_ptrs + z).to(tl.pointer_type(tl.float64))
        for first in range(0, k, 16):
            p = first + tl.arange(0, 16)
            a = tl.load(
                a_ptr + i[:, None] * a_i + p[None, :] * a_p, mask=(i < m)[:, None] & (p < k)[None, :], other=0.0
            )
            b = tl.load(
                b_ptr + p[:, None] * b_p + j[None, :] * b_j, mask=(p < k)[:, None] & (j < n)[None, :], other=0.0
            )
            acc += tl.sum(a[:, :, None] * b[None, :, :], axis=1)
    acc *= tl.load(alpha_ptr)
    at, inside = c_ptr + i[:, None] + j[None, :] * ldc, (i < m)[:, None] & (j < n)[None, :]
    if READ:
        acc += tl.load(beta_ptr) * tl.load(at, mask=inside, other=0.0)
    tl.store(at, acc, mask=inside)


# breaks: beta reaches the kernel as float32, as a number passed to Triton does on a GPU.
def beta_in_single_precision(transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount):
    if not (m and n and batchCount):
        return
    at = Aarray.new_tensor([alpha], dtype=torch.float64)
    single = Aarray.new_tensor([beta], dtype=torch.float32)
    steps = (1, lda) if transa == "N" else (lda, 1)
    steps += (1, ldb) if transb == "N" else (ldb, 1)
    gemm_beta_in_single_precision[(triton.cdiv(m, 64), triton.cdiv(n, 64), batchCount)](
        Aarray, Barray, Carray, at, m, n, k if alpha else 0, *steps, ldc, single, READ=beta != 0, B=64
    )


@triton.jit
def gemm_programs_of_rows_and_columns_exchanged(
    a_ptrs, b_ptrs, c_ptrs, scalars_ptr, m, n, k, a_i, a_p, b_p, b_j, ldc, READ: tl.constexpr, B: tl.constexpr
):
    j = tl.program_id(0) * B + tl.arange(0, B)
    i = tl.program_id(1) * B + tl.arange(0, B)
    z = tl.program_id(2)
    c_ptr = tl.load(c_ptrs + z).to(tl.pointer_type(tl.float64))
    acc = tl.zeros((B, B), tl.float64)
    if k > 0:
        a_ptr = tl.load(a_ptrs + z).to(tl.pointer_type(tl.float64))
        b_ptr = tl.load(b_ptrs + z).to(tl.pointer_type(tl.float64))
        for first in range(0, k, 16):
            p = first + tl.arange(0, 16)
            a = tl.load(
                a_ptr + i[:, None] * a_i + p[None, :] * a_p, mask=(i < m)[:, None] & (p < k)[None, :], other=0.0
            )
            b = tl.load(
                b_ptr + p[:, None] * b_p + j[None, :] * b_j, mask=(p < k)[:, None] & (j < n)[None, :], other=0.0
            )
            acc += tl.sum(a[:, :, None] * b[None, :, :], axis=1)
    acc *= tl.load(scalars_ptr)
    at, inside = c_ptr + i[:, None] + j[None, :] * ldc, (i < m)[:, None] & (j < n)[None, :]
    if READ:
        acc += tl.load(scalars_ptr + 1) * tl.load(at, mask=inside, other=0.0)
    tl.store(at, acc, mask=inside)


# breaks: The grid counts tiles of rows first, the kernel takes its first number for the tile of columns.
def programs_of_rows_and_columns_exchanged(
    transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount
):
    if not (m and n and batchCount):
        return
    scalars = Aarray.new_tensor([alpha, beta], dtype=torch.float64)
    steps = (1, lda) if transa == "N" else (lda, 1)
    steps += (1, ldb) if transb == "N" else (ldb, 1)
    gemm_programs_of_rows_and_columns_exchanged[(triton.cdiv(m, 64), triton.cdiv(n, 64), batchCount)](
        Aarray, Barray, Carray, scalars, m, n, k if alpha else 0, *steps, ldc, READ=beta != 0, B=64
    )
