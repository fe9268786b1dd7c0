"""cublasSgeam: C = alpha op(A) + beta op(B). The last axis of C's tile runs down a column, along memory; a transposed
operand is read with its own columns along the last axis and turned round on chip."""
import torch
import triton
import triton.language as tl


@triton.jit
def _raw(A, lda, rows, cols, m, n, T: tl.constexpr, FULL: tl.constexpr, EV: tl.constexpr):
    """The tile of op(A)[rows, cols] as it lies in memory: columns along the first axis, or rows if transposed."""
    if T:
        p = A + rows[:, None] * lda + cols[None, :]
        if FULL:
            a = tl.load(p, eviction_policy=EV)
        else:
            a = tl.load(p, mask=(rows < m)[:, None] & (cols < n)[None, :], other=0.0, eviction_policy=EV)
    else:
        p = A + cols[:, None] * lda + rows[None, :]
        if FULL:
            a = tl.load(p, eviction_policy=EV)
        else:
            a = tl.load(p, mask=(cols < n)[:, None] & (rows < m)[None, :], other=0.0, eviction_policy=EV)
    return a


@triton.jit(do_not_specialize=["alpha", "beta", "tm"])
def _geam(A, B, C, m, n, tm, alpha, beta, lda, ldb, ldc, TA: tl.constexpr, TB: tl.constexpr,
          HAS_A: tl.constexpr, HAS_B: tl.constexpr, FULL: tl.constexpr, BIG: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr, EV: tl.constexpr):
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
    # both loads are on their way before either tile is turned round
    if HAS_A:
        a = _raw(A, lda, rows, cols, m, n, TA, FULL, EV)
    if HAS_B:
        b = _raw(B, ldb, rows, cols, m, n, TB, FULL, EV)
    if HAS_A:
        if TA:
            a = tl.trans(a)
        out = alpha * a
    if HAS_B:
        if TB:
            b = tl.trans(b)
        if HAS_A:
            out = out + beta * b
        else:
            out = beta * b
    p = C + cols[:, None] * ldc + rows[None, :]
    if FULL:
        tl.store(p, out)
    else:
        tl.store(p, out, mask=(cols < n)[:, None] & (rows < m)[None, :])


@triton.jit(do_not_specialize=["alpha", "beta"])
def _flat(A, B, C, n, alpha, beta, HAS_A: tl.constexpr, HAS_B: tl.constexpr, FULL: tl.constexpr, BIG: tl.constexpr,
          BLOCK: tl.constexpr):
    """Nothing is transposed and nothing padded: three vectors."""
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    out = tl.zeros((BLOCK,), dtype=tl.float32)
    if FULL:
        if HAS_A:
            a = tl.load(A + i)
        if HAS_B:
            b = tl.load(B + i)
    else:
        mask = i < n
        if HAS_A:
            a = tl.load(A + i, mask=mask, other=0.0)
        if HAS_B:
            b = tl.load(B + i, mask=mask, other=0.0)
    if HAS_A:
        out = alpha * a
    if HAS_B:
        if HAS_A:
            out = out + beta * b
        else:
            out = beta * b
    if FULL:
        tl.store(C + i, out)
    else:
        tl.store(C + i, out, mask=i < n)


def cublasSgeam(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m <= 0 or n <= 0:
        return
    has_a, has_b = alpha != 0, beta != 0
    ta = transa != "N" and has_a
    tb = transb != "N" and has_b
    if not (ta or tb) and (n == 1 or (ldc == m and (lda == m or not has_a) and (ldb == m or not has_b))):
        BLOCK = 2048
        count = m * n
        _flat[(triton.cdiv(count, BLOCK),)](A, B, C, count, float(alpha), float(beta), HAS_A=has_a, HAS_B=has_b,
                                            FULL=count % BLOCK == 0, BIG=count + BLOCK >= 2 ** 31, BLOCK=BLOCK, num_warps=8)
        return
    if ta or tb:
        BM = BN = 64
    else:
        BM = min(1024, max(16, triton.next_power_of_2(m)))
        BN = min(4096 // BM, max(1, triton.next_power_of_2(n)))
    # tiles that share cache lines want them kept until the neighbour has come by
    whole = all(ld % 32 == 0 and x.data_ptr() % 128 == 0
                for x, ld, has in ((A, lda, has_a), (B, ldb, has_b)) if has)
    tm, tn = triton.cdiv(m, BM), triton.cdiv(n, BN)
    # offsets of 32 bits where they hold everything, the ends of the last tiles included
    mm, nn = tm * BM, tn * BN
    big = max(mm + nn * ldc, (nn + mm * lda if ta else mm + nn * lda) if has_a else 0,
              (nn + mm * ldb if tb else mm + nn * ldb) if has_b else 0) >= 2 ** 31
    _geam[(tm * tn,)](A, B, C, m, n, tm, float(alpha), float(beta), lda, ldb, ldc, TA=ta, TB=tb,
                      HAS_A=has_a, HAS_B=has_b, FULL=m % BM == 0 and n % BN == 0, BIG=big, BM=BM, BN=BN,
                      EV="evict_first" if whole else "", num_warps=8)
