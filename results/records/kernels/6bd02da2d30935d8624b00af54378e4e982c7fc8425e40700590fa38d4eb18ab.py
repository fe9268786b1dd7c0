import torch
import triton
import triton.language as tl


@triton.jit
def _even(x, BIT: tl.constexpr):
    # gathers the codes of even number of a word in its low half
    if BIT == 4:
        y = x & 0x0F0F0F0F
        y = (y | (y >> 4)) & 0x00FF00FF
        y = (y | (y >> 8)) & 0x0000FFFF
    else:
        y = x & 0x33333333
        y = (y | (y >> 2)) & 0x0F0F0F0F
        y = (y | (y >> 4)) & 0x00FF00FF
        y = (y | (y >> 8)) & 0x0000FFFF
    return y


@triton.jit
def _word_kernel(Q, n, BIT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    x = tl.load(Q + offs, mask=m, other=0).to(tl.uint32, bitcast=True)
    y = _even(x, BIT) | (_even(x >> BIT, BIT) << 16)
    tl.store(Q + offs, y.to(tl.int32, bitcast=True), mask=m)


@triton.jit
def _code3(w0, w1, w2, i: tl.constexpr):
    # code i of 32 of a stream of bits in three words
    sh: tl.constexpr = (3 * i) % 32
    wi: tl.constexpr = (3 * i) // 32
    if wi == 0:
        a = w0
        b = w1
    elif wi == 1:
        a = w1
        b = w2
    else:
        a = w2
        b = w2
    if sh > 29:
        c = ((a >> sh) | (b << (32 - sh))) & 7
    else:
        c = (a >> sh) & 7
    return c


@triton.jit
def _put3(o0, o1, o2, c, i: tl.constexpr):
    # puts code i where exllama's kernels expect it
    if i == 30:
        o0 = o0 | ((c & 1) << 15)
        o1 = o1 | (((c >> 1) & 1) << 15)
        o2 = o2 | (((c >> 2) & 1) << 15)
    elif i == 31:
        o0 = o0 | ((c & 1) << 31)
        o1 = o1 | (((c >> 1) & 1) << 31)
        o2 = o2 | (((c >> 2) & 1) << 31)
    else:
        sh: tl.constexpr = 3 * ((i % 10) // 2) + 16 * ((i % 10) % 2)
        if i < 10:
            o0 = o0 | (c << sh)
        elif i < 20:
            o1 = o1 | (c << sh)
        else:
            o2 = o2 | (c << sh)
    return o0, o1, o2


@triton.jit
def _three_kernel(Q, U, N, ncb, BU: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    ub = pid // ncb
    cb = pid - ub * ncb
    u = ub * BU + tl.arange(0, BU)
    c = cb.to(tl.int64) * BN + tl.arange(0, BN)
    n64 = pid.to(tl.int64) * 0 + N
    m = (u < U)[:, None] & (c < N)[None, :]
    p = Q + (u.to(tl.int64) * (3 * n64))[:, None] + c[None, :]
    w0 = tl.load(p, mask=m, other=0).to(tl.uint32, bitcast=True)
    w1 = tl.load(p + n64, mask=m, other=0).to(tl.uint32, bitcast=True)
    w2 = tl.load(p + 2 * n64, mask=m, other=0).to(tl.uint32, bitcast=True)
    o0 = w0 & 0
    o1 = w1 & 0
    o2 = w2 & 0
    for i in tl.static_range(32):
        o0, o1, o2 = _put3(o0, o1, o2, _code3(w0, w1, w2, i), i)
    tl.store(p, o0.to(tl.int32, bitcast=True), mask=m)
    tl.store(p + n64, o1.to(tl.int32, bitcast=True), mask=m)
    tl.store(p + 2 * n64, o2.to(tl.int32, bitcast=True), mask=m)


@triton.jit
def _fetch(S, P, r, c, rm, m, N, BIT: tl.constexpr):
    # codes of the rows P[r], columns c, of a matrix that is still in its old order
    s = tl.load(P + r, mask=rm, other=0)
    if BIT == 3:
        bp = s * 3
        w = bp >> 5
        sh = bp & 31
        a = tl.load(S + (w.to(tl.int64) * N)[:, None] + c[None, :], mask=m, other=0).to(tl.uint32, bitcast=True)
        over = sh > 29
        w2 = tl.where(over, w + 1, w)
        b = tl.load(S + (w2.to(tl.int64) * N)[:, None] + c[None, :], mask=m & over[:, None],
                    other=0).to(tl.uint32, bitcast=True)
        s1 = sh.to(tl.uint32)[:, None]
        s2 = (31 - sh).to(tl.uint32)[:, None]
        v = ((a >> s1) | ((b << 1) << s2)) & 7
    else:
        PK: tl.constexpr = 32 // BIT
        w = s // PK
        sh = ((s % PK) * BIT).to(tl.uint32)
        a = tl.load(S + (w.to(tl.int64) * N)[:, None] + c[None, :], mask=m, other=0).to(tl.uint32, bitcast=True)
        v = (a >> sh[:, None]) & ((1 << BIT) - 1)
    return v


@triton.jit
def _place(v, i: tl.constexpr, BIT: tl.constexpr):
    if BIT == 8:
        r = v << (8 * i)
    else:
        r = v << (BIT * (i // 2) + 16 * (i % 2))
    return r


@triton.jit
def _perm_kernel(S, Q, P, U, N, ncb, BIT: tl.constexpr, PU: tl.constexpr, BN: tl.constexpr):
    # S: the old words, Q: the new ones. They are the same where a program holds whole columns:
    # then everything is read before the first word is written.
    pid = tl.program_id(0)
    ub = pid // ncb
    cb = pid - ub * ncb
    u = ub * PU + tl.arange(0, PU)
    um = u < U
    c = cb.to(tl.int64) * BN + tl.arange(0, BN)
    n64 = pid.to(tl.int64) * 0 + N
    m = um[:, None] & (c < N)[None, :]
    if BIT == 3:
        o0 = tl.zeros([PU, BN], dtype=tl.uint32)
        o1 = tl.zeros([PU, BN], dtype=tl.uint32)
        o2 = tl.zeros([PU, BN], dtype=tl.uint32)
        for i in tl.static_range(32):
            o0, o1, o2 = _put3(o0, o1, o2, _fetch(S, P, u * 32 + i, c, um, m, N, BIT), i)
        tl.debug_barrier()
        p = Q + (u.to(tl.int64) * (3 * n64))[:, None] + c[None, :]
        tl.store(p, o0.to(tl.int32, bitcast=True), mask=m)
        tl.store(p + n64, o1.to(tl.int32, bitcast=True), mask=m)
        tl.store(p + 2 * n64, o2.to(tl.int32, bitcast=True), mask=m)
    else:
        o = tl.zeros([PU, BN], dtype=tl.uint32)
        for i in tl.static_range(32 // BIT):
            o = o | _place(_fetch(S, P, u * (32 // BIT) + i, c, um, m, N, BIT), i, BIT)
        tl.debug_barrier()
        p = Q + (u.to(tl.int64) * N)[:, None] + c[None, :]
        tl.store(p, o.to(tl.int32, bitcast=True), mask=m)


def gptq_shuffle(q_weight, q_perm, bit):
    KW, N = q_weight.shape
    if KW == 0 or N == 0:
        return None
    if q_perm.numel() == 0:
        if bit == 8:
            return None
        if bit == 3:
            U = KW // 3
            BU, BN = 4, 128
            ncb = triton.cdiv(N, BN)
            _three_kernel[(triton.cdiv(U, BU) * ncb,)](q_weight, U, N, ncb, BU=BU, BN=BN, num_warps=4)
            return None
        n = KW * N
        BLOCK = 2048
        _word_kernel[(triton.cdiv(n, BLOCK),)](q_weight, n, BIT=bit, BLOCK=BLOCK, num_warps=4)
        return None
    U = KW // 3 if bit == 3 else KW
    PU = triton.next_power_of_2(U)
    limit = 4096 if bit == 3 else 16384
    BN = 32
    while BN > 8 and PU * BN > limit:
        BN //= 2
    if PU * BN <= limit:
        # whole columns in registers
        nw = max(1, min(16, PU * BN // 1024))
        ncb = triton.cdiv(N, BN)
        _perm_kernel[(ncb,)](q_weight, q_weight, q_perm, U, N, ncb, BIT=bit, PU=PU, BN=BN, num_warps=nw)
    else:
        old = q_weight.clone()
        PU, BN = 16, 64
        ncb = triton.cdiv(N, BN)
        _perm_kernel[(triton.cdiv(U, PU) * ncb,)](old, q_weight, q_perm, U, N, ncb, BIT=bit, PU=PU, BN=BN,
                                                 num_warps=4)
    return None
