"""cublasSgeam: C = alpha op(A) + beta op(B). The last axis of C's tile runs down a column, along memory; a transposed
operand is read with its own columns along the last axis and turned round on chip."""
import torch
import triton
import triton.language as tl


@triton.jit
def _operand(A, lda, rows, cols, m, n, T: tl.constexpr, FULL: tl.constexpr):
    """The tile op(A)[rows, cols] with the columns along the first axis."""
    if T:
        p = A + rows[:, None] * lda + cols[None, :]
        if FULL:
            a = tl.load(p, eviction_policy="evict_first")
        else:
            a = tl.load(p, mask=(rows < m)[:, None] & (cols < n)[None, :], other=0.0, eviction_policy="evict_first")
        a = tl.trans(a)
    else:
        p = A + cols[:, None] * lda + rows[None, :]
        if FULL:
            a = tl.load(p, eviction_policy="evict_first")
        else:
            a = tl.load(p, mask=(cols < n)[:, None] & (rows < m)[None, :], other=0.0, eviction_policy="evict_first")
    return a


@triton.jit(do_not_specialize=["alpha", "beta", "tm"])
def _geam(A, B, C, m, n, tm, alpha, beta, lda, ldb, ldc, TA: tl.constexpr, TB: tl.constexpr,
          HAS_A: tl.constexpr, HAS_B: tl.constexpr, FULL: tl.constexpr, BIG: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr):
    # tm, the tiles of a column, comes from Python: m + BM may pass 32 bits
    pid = tl.program_id(0)
    im = pid % tm
    jn = pid // tm
    if BIG:
        im = im.to(tl.int64)
        jn = jn.to(tl.int64)
    rows = im * BM + tl.arange(0, BM)
    cols = jn * BN + tl.arange(0, BN)
    out = tl.zeros((BN, BM), dtype=tl.float32)
    if HAS_A:
        out = alpha * _operand(A, lda, rows, cols, m, n, TA, FULL)
    if HAS_B:
        b = beta * _operand(B, ldb, rows, cols, m, n, TB, FULL)
        if HAS_A:
            out = out + b
        else:
            out = b
    p = C + cols[:, None] * ldc + rows[None, :]
    if FULL:
        tl.store(p, out)
    else:
        tl.store(p, out, mask=(cols < n)[:, None] & (rows < m)[None, :])


def cublasSgeam(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m <= 0 or n <= 0:
        return
    has_a, has_b = alpha != 0, beta != 0
    ta = transa != "N" and has_a
    tb = transb != "N" and has_b
    warps = 8
    if ta or tb:
        BM = BN = 64
    elif lda == m and ldb == m and ldc == m:
        # no padding: one long column
        m, n = m * n, 1
        lda = ldb = ldc = m
        BM, BN, warps = 2048, 1, 4
    else:
        BM = min(1024, max(16, triton.next_power_of_2(m)))
        BN = min(4096 // BM, max(1, triton.next_power_of_2(n)))
    tm, tn = triton.cdiv(m, BM), triton.cdiv(n, BN)
    # offsets of 32 bits where they hold everything, the ends of the last tiles included
    mm, nn = tm * BM, tn * BN
    big = max(mm + nn * ldc, (nn + mm * lda if ta else mm + nn * lda) if has_a else 0,
              (nn + mm * ldb if tb else mm + nn * ldb) if has_b else 0) >= 2 ** 31
    _geam[(tm * tn,)](A, B, C, m, n, tm, float(alpha), float(beta), lda, ldb, ldc, TA=ta, TB=tb,
                      HAS_A=has_a, HAS_B=has_b, FULL=m % BM == 0 and n % BN == 0, BIG=big, BM=BM, BN=BN, num_warps=warps)
