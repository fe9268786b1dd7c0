import torch
import triton
import triton.language as tl


@triton.jit
def _exp(x):
    # exp for x <= 0 (or -inf), to about an ulp
    x = tl.maximum(x, -200.0)
    t = x * 1.4426950408889634
    lo = tl.fma(x, 1.4426950408889634, -t)
    lo = lo + x * 1.925963033500692e-08
    return tl.exp2(t) * (1.0 + lo * 0.6931471805599453)


@triton.jit
def _fp8_code(x, SOFT: tl.constexpr):
    # float32 -> bits of float8_e4m3fn, nearest even, saturating
    if SOFT:
        b = x.to(tl.int32, bitcast=True)
        a = b & 0x7FFFFFFF
        sign = (b >> 24) & 0x80
        nrm = ((tl.minimum(a, 0x7F800000) + 0x7FFFF + ((a >> 20) & 1)) >> 20) - 960
        nrm = tl.minimum(nrm, 0x7E)
        ab = tl.minimum(a, 0x3F800000).to(tl.float32, bitcast=True)
        sub = (ab + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
        code = tl.where(a < 0x3C800000, sub, nrm)
        code = tl.where(a > 0x7F800000, 0x7F, code)
        r = (code | sign).to(tl.uint8)
    else:
        r = x.to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    return r


@triton.jit
def _merge_kernel(O, OL, P, PL, S, SL, SC, T, H, D, ptc, ot, oh, pt, ph, st, sh,
                  TB: tl.constexpr, BD: tl.constexpr, HAS_L: tl.constexpr, FP8: tl.constexpr,
                  SOFT: tl.constexpr):
    pid = tl.program_id(0)
    tb = pid // H
    h = pid - tb * H
    t = tb * TB + tl.arange(0, TB)
    tm = t < T
    has = tm & (t < ptc)
    t64 = t.to(tl.int64)
    h64 = h.to(tl.int64)
    lo = h64 * T + t
    ninf = -float("inf")
    inf = float("inf")
    p = tl.load(PL + lo, mask=has, other=0.0)
    s0 = tl.load(SL + lo, mask=tm, other=0.0)
    if FP8:
        scale = tl.load(SC)
    # all loads come first, so that they are under way together
    d = tl.arange(0, BD)
    dm = d < D
    x = tl.load(P + (t64 * pt + h64 * ph)[:, None] + d[None, :], mask=has[:, None] & dm[None, :], other=0.0)
    y = tl.load(S + (t64 * st + h64 * sh)[:, None] + d[None, :], mask=tm[:, None] & dm[None, :], other=0.0)
    p = tl.where(p == inf, ninf, p)
    s = tl.where(s0 == inf, ninf, s0)
    m = tl.maximum(p, s)
    none = m == ninf
    ms = tl.where(none, 0.0, m)
    pe = _exp(tl.where(p == ninf, -1000.0, p - ms))
    se = _exp(tl.where(s == ninf, -1000.0, s - ms))
    pe = tl.where(p == ninf, 0.0, pe)
    se = tl.where(s == ninf, 0.0, se)
    tot = tl.where(none, 1.0, pe + se)
    wp = tl.div_rn(pe, tot)
    ws = tl.div_rn(se, tot)
    wp = tl.where(none, 1.0, wp)
    wp = tl.where(has, wp, 0.0)
    ws = tl.where(has, ws, 1.0)
    if HAS_L:
        # log(1 + e), exact also where e is small
        e = tl.minimum(pe, se)
        u = 1.0 + e
        dd = u - 1.0
        small = dd == 0.0
        lg = tl.where(small, e, tl.log(u) * tl.div_rn(e, tl.where(small, 1.0, dd)))
        lse = tl.where(none, ninf, ms + lg)
        lse = tl.where(has, lse, s0)
    o = x.to(tl.float32) * wp[:, None] + y.to(tl.float32) * ws[:, None]
    op = O + (t64 * ot + h64 * oh)[:, None] + d[None, :]
    om = tm[:, None] & dm[None, :]
    if FP8:
        inv = tl.div_rn(1.0, scale)
        tl.store(op, _fp8_code(o * inv, SOFT), mask=om)
    else:
        tl.store(op, o.to(O.dtype.element_ty), mask=om)
    if HAS_L:
        tl.store(OL + lo, lse, mask=tm)


def merge_attn_states(output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse,
                      prefill_tokens_with_context, output_scale=None):
    T, H, D = output.shape
    if T == 0 or H == 0:
        return None
    fp8 = output_scale is not None
    out = output.view(torch.uint8) if fp8 else output
    ptc = T if prefill_tokens_with_context is None else int(prefill_tokens_with_context)
    ptc = max(0, min(ptc, T))
    BD = triton.next_power_of_2(max(D, 1))
    TB = max(1, min(64, 2048 // BD))
    _merge_kernel[(triton.cdiv(T, TB) * H,)](
        out, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, output_scale,
        T, H, D, ptc, output.stride(0), output.stride(1), prefix_output.stride(0), prefix_output.stride(1),
        suffix_output.stride(0), suffix_output.stride(1),
        TB=TB, BD=BD, HAS_L=output_lse is not None, FP8=fp8, SOFT=not output.is_cuda, num_warps=4)
    return None

