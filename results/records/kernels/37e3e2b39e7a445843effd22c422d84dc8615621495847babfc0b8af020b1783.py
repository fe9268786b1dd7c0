import torch
import triton
import triton.language as tl


@triton.jit
def _penalty_kernel(L, P, O, R, V, nblk, N: tl.constexpr, G: tl.constexpr, BIG: tl.constexpr):
    pid = tl.program_id(0)
    row = pid // nblk
    blk = pid - row * nblk
    row64 = row.to(tl.int64)
    if BIG:
        blk = blk.to(tl.int64)
    r = tl.load(R + row64).to(tl.float32)
    # a huge divisor and what it divides are made smaller first: its reciprocal would be subnormal
    s = tl.where(r > 1.0e30, 5.421010862427522e-20, 1.0)
    inv = tl.div_rn(1.0, r * s)
    cols = blk * (N * G) + tl.arange(0, N)[:, None] * G + tl.arange(0, G)[None, :]
    ok = cols < V
    base = row64 * V
    pm = tl.load(P + base + cols, mask=ok, other=0)
    om = tl.load(O + base + cols, mask=ok, other=0)
    m = (pm | om) != 0
    # groups of G neighbours (one or two sectors) without any penalised token are not touched
    grp = tl.max(m.to(tl.int32), axis=1)
    need = (grp[:, None] > 0) & ok
    lp = L + base + cols
    x = tl.load(lp, mask=need, other=0.0)
    xf = x.to(tl.float32)
    y = tl.where(xf > 0, (xf * s) * inv, xf * r)
    out = tl.where(m, y.to(L.dtype.element_ty), x)
    tl.store(lp, out, mask=need)


@triton.jit
def _short_kernel(L, P, O, R, V, total, BLOCK: tl.constexpr, BIG: tl.constexpr):
    # short rows, many of them in a block
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    ok = i < total
    pm = tl.load(P + i, mask=ok, other=0)
    om = tl.load(O + i, mask=ok, other=0)
    m = ((pm | om) != 0) & ok
    r = tl.load(R + i // V, mask=m, other=1.0).to(tl.float32)
    s = tl.where(r > 1.0e30, 5.421010862427522e-20, 1.0)
    x = tl.load(L + i, mask=m, other=0.0).to(tl.float32)
    y = tl.where(x > 0, tl.div_rn(x * s, r * s), x * r)
    tl.store(L + i, y.to(L.dtype.element_ty), mask=m)


def apply_repetition_penalties_cuda(logits, prompt_mask, output_mask, repetition_penalties):
    S, V = logits.shape
    if S == 0 or V == 0:
        return None
    pm = prompt_mask.view(torch.uint8)
    om = output_mask.view(torch.uint8)
    if V < 2048:
        BLOCK = 1024
        total = S * V
        _short_kernel[(triton.cdiv(total, BLOCK),)](logits, pm, om, repetition_penalties, V, total,
                                                    BLOCK=BLOCK, BIG=total >= 2 ** 31 - 2 ** 14, num_warps=4)
        return None
    G = 8 if logits.element_size() == 4 else 16
    BLOCK = 4096
    N = BLOCK // G
    nblk = triton.cdiv(V, BLOCK)
    _penalty_kernel[(S * nblk,)](logits, pm, om, repetition_penalties, V, nblk,
                                 N=N, G=G, BIG=V >= 2 ** 31 - 2 ** 14, num_warps=4)
    return None
