import torch
import triton
import triton.language as tl


@triton.jit
def solve_alpha_in_single_precision(
    a_ptrs, b_ptrs, order, count, s_row, s_column, b_step, b_next, alpha_ptr, LOWER: tl.constexpr, UNIT: tl.constexpr
):
    b = tl.load(b_ptrs + tl.program_id(1)).to(tl.pointer_type(tl.float64))
    i = tl.arange(0, 256)
    j = tl.program_id(0) * 64 + tl.arange(0, 64)
    at, inside = b + i[:, None] * b_step + j[None, :] * b_next, (i < order)[:, None] & (j < count)[None, :]
    x = tl.zeros((256, 64), tl.float64)
    alpha = tl.load(alpha_ptr)
    if alpha != 0:
        a = tl.load(a_ptrs + tl.program_id(1)).to(tl.pointer_type(tl.float64))
        x = tl.load(at, mask=inside, other=0.0) * alpha
        for step in range(order):
            p = step if LOWER else order - 1 - step
            found = tl.sum(tl.where((i == p)[:, None], x, 0.0), axis=0)
            if not UNIT:
                found = found / tl.load(a + p * s_row + p * s_column)
            rest = (i < order) & ((i > p) if LOWER else (i < p))
            column = tl.load(a + i * s_row + p * s_column, mask=rest, other=0.0)
            x = tl.where((i == p)[:, None], found[None, :], x - column[:, None] * found[None, :])
    tl.store(at, x, mask=inside)


# breaks: alpha reaches the kernel as float32, as a number passed to Triton does on a GPU.
def alpha_in_single_precision(side, uplo, trans, diag, m, n, alpha, Aarray, lda, Barray, ldb, batchCount):
    if not (m and n and batchCount):
        return
    left, lower = side == "L", (uplo == "L") == (trans == "N")
    # X op(A) = B is op(A)ᵀ Xᵀ = Bᵀ.
    steps = (1, lda) if (trans == "N") == left else (lda, 1)
    steps += (1, ldb) if left else (ldb, 1)
    order, count = (m, n) if left else (n, m)
    solve_alpha_in_single_precision[(triton.cdiv(count, 64), batchCount)](
        Aarray,
        Barray,
        order,
        count,
        *steps,
        Aarray.new_tensor([alpha], dtype=torch.float32),
        LOWER=lower == left,
        UNIT=diag == "U",
    )


@triton.jit
def solve_orders_up_to_128(
    a_ptrs, b_ptrs, order, count, s_row, s_column, b_step, b_next, alpha, LOWER: tl.constexpr, UNIT: tl.constexpr
):
    b = tl.load(b_ptrs + tl.program_id(1)).to(tl.pointer_type(tl.float64))
    i = tl.arange(0, 128)
    j = tl.program_id(0) * 64 + tl.arange(0, 64)
    at, inside = b + i[:, None] * b_step + j[None, :] * b_next, (i < order)[:, None] & (j < count)[None, :]
    x = tl.zeros((128, 64), tl.float64)
    if alpha != 0:
        a = tl.load(a_ptrs + tl.program_id(1)).to(tl.pointer_type(tl.float64))
        x = tl.load(at, mask=inside, other=0.0) * alpha
        size = tl.minimum(order, 128)
        for step in range(size):
            p = step if LOWER else size - 1 - step
            found = tl.sum(tl.where((i == p)[:, None], x, 0.0), axis=0)
            if not UNIT:
                found = found / tl.load(a + p * s_row + p * s_column)
            rest = (i < order) & ((i > p) if LOWER else (i < p))
            column = tl.load(a + i * s_row + p * s_column, mask=rest, other=0.0)
            x = tl.where((i == p)[:, None], found[None, :], x - column[:, None] * found[None, :])
    tl.store(at, x, mask=inside)


# breaks: Solutions are kept in 128 lanes, and unknowns from 128 on keep their right-hand sides.
def orders_up_to_128(side, uplo, trans, diag, m, n, alpha, Aarray, lda, Barray, ldb, batchCount):
    if not (m and n and batchCount):
        return
    left, lower = side == "L", (uplo == "L") == (trans == "N")
    # X op(A) = B is op(A)ᵀ Xᵀ = Bᵀ.
    steps = (1, lda) if (trans == "N") == left else (lda, 1)
    steps += (1, ldb) if left else (ldb, 1)
    order, count = (m, n) if left else (n, m)
    solve_orders_up_to_128[(triton.cdiv(count, 64), batchCount)](
        Aarray, Barray, order, count, *steps, float(alpha), LOWER=lower == left, UNIT=diag == "U"
    )
