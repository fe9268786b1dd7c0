import torch
import triton
import triton.language as tl


@triton.jit
def _fp8_code(x, SOFT: tl.constexpr):
    # float32 -> bits of float8_e4m3fn, nearest even, saturating, NaN stays NaN
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
def _flash_kernel(key, value, kc, vc, slots, ks, vs, ntok, bs, njb, ss, k0, k1, v0, v1, cb, cp, ch, TOT,
                  D: tl.constexpr, FLAT: tl.constexpr, TOK: tl.constexpr, BJ: tl.constexpr,
                  FP8: tl.constexpr, SOFT: tl.constexpr, SMALL: tl.constexpr):
    pid = tl.program_id(0)
    tb = pid // njb
    jb = pid - tb * njb
    t = tb * TOK + tl.arange(0, TOK)
    tm = t < ntok
    t64 = t.to(tl.int64)
    slot = tl.load(slots + t64 * ss, mask=tm, other=-1)
    valid = tm & (slot >= 0)
    slot = tl.where(valid, slot, 0)
    if SMALL:
        sl = slot.to(tl.int32)
    else:
        sl = slot
    blk = sl // bs
    plc = sl - blk * bs
    base = blk.to(tl.int64) * cb + plc.to(tl.int64) * cp
    j = jb * BJ + tl.arange(0, BJ)
    m = valid[:, None] & (j < TOT)[None, :]
    if FLAT:
        ok = j
        ov = j
        oc = j
    else:
        h = (j // D).to(tl.int64)
        d = j % D
        ok = h * k1 + d
        ov = h * v1 + d
        oc = h * ch + d
    x = tl.load(key + (t64 * k0)[:, None] + ok[None, :], mask=m, other=0.0)
    y = tl.load(value + (t64 * v0)[:, None] + ov[None, :], mask=m, other=0.0)
    co = base[:, None] + oc[None, :]
    if FP8:
        ki = tl.div_rn(1.0, tl.load(ks))
        vi = tl.div_rn(1.0, tl.load(vs))
        tl.store(kc + co, _fp8_code(x.to(tl.float32) * ki, SOFT), mask=m)
        tl.store(vc + co, _fp8_code(y.to(tl.float32) * vi, SOFT), mask=m)
    else:
        tl.store(kc + co, x, mask=m)
        tl.store(vc + co, y, mask=m)


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    n = slot_mapping.shape[0]
    H = key.shape[1]
    D = key.shape[2]
    tot = H * D
    if n == 0 or tot == 0:
        return None
    fp8 = kv_cache_dtype != 'auto'
    kc = key_cache
    vc = value_cache
    if kc.element_size() == 1:
        kc = kc.view(torch.uint8)
        vc = vc.view(torch.uint8)
    bs = key_cache.shape[1]
    flat = H == 1 or (key.stride(1) == D and value.stride(1) == D and key_cache.stride(2) == D)
    BJ = max(32, min(1024, triton.next_power_of_2(tot)))
    TOK = max(1, min(16, 4096 // BJ))
    njb = triton.cdiv(tot, BJ)
    small = key_cache.shape[0] * bs < 2 ** 31
    _flash_kernel[(triton.cdiv(n, TOK) * njb,)](
        key, value, kc, vc, slot_mapping, k_scale, v_scale, n, bs, njb, slot_mapping.stride(0),
        key.stride(0), key.stride(1), value.stride(0), value.stride(1),
        key_cache.stride(0), key_cache.stride(1), key_cache.stride(2), tot,
        D=D, FLAT=flat, TOK=TOK, BJ=BJ, FP8=fp8, SOFT=not key.is_cuda, SMALL=small, num_warps=4)
    return None
