import torch
import triton
import triton.language as tl


@triton.jit
def _tile(
    q, m_i, l_i, acc, t0, L, bt_ptr, k_base, v_base, ks0, vs0, qk_scale, slope,
    BS: tl.constexpr, X: tl.constexpr, KS2: tl.constexpr, KS3: tl.constexpr,
    KS4: tl.constexpr, VS2: tl.constexpr, VS3: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, BN: tl.constexpr,
    MASKED: tl.constexpr, ALIBI: tl.constexpr, F32: tl.constexpr,
):
    t = t0 + tl.arange(0, BN)
    tb = t // BS
    tp = t % BS
    d = tl.arange(0, DP)
    d64 = d.to(tl.int64)
    koff = (d64 // X) * KS2 + (d64 % X) * KS4
    voff = d64 * VS2
    tp = tp.to(tl.int64)
    if MASKED:
        inb = tl.arange(0, BN) < L - t0
        bid = tl.load(bt_ptr + tb, mask=inb, other=0).to(tl.int64)
        kp = k_base + (bid * ks0 + tp * KS3)[None, :] + koff[:, None]
        vp = v_base + (bid * vs0 + tp * VS3)[:, None] + voff[None, :]
        k = tl.load(kp, mask=inb[None, :] & (d < D)[:, None], other=0.0)
        v = tl.load(vp, mask=inb[:, None] & (d < D)[None, :], other=0.0)
    else:
        bid = tl.load(bt_ptr + tb).to(tl.int64)
        kp = k_base + (bid * ks0 + tp * KS3)[None, :] + koff[:, None]
        vp = v_base + (bid * vs0 + tp * VS3)[:, None] + voff[None, :]
        if D == DP:
            k = tl.load(kp)
            v = tl.load(vp)
        else:
            k = tl.load(kp, mask=(d < D)[:, None], other=0.0)
            v = tl.load(vp, mask=(d < D)[None, :], other=0.0)
    if F32:
        k = k.to(tl.float32)
        v = v.to(tl.float32)
    else:
        k = k.to(q.dtype)
        v = v.to(q.dtype)
    if MASKED:
        v = tl.where(inb[:, None], v, 0.0).to(v.dtype)
    if F32:
        qk = tl.dot(q, k, input_precision="ieee")
    else:
        qk = tl.dot(q, k)
    qk = qk * qk_scale
    if ALIBI:
        qk += slope[:, None] * (t - L + 1).to(tl.float32)[None, :]
    if MASKED:
        qk = tl.where(inb[None, :], qk, float("-inf"))
    m_new = tl.maximum(m_i, tl.max(qk, axis=1))
    alpha = tl.exp2(m_i - m_new)
    p = tl.exp2(qk - m_new[:, None])
    l_i = l_i * alpha + tl.sum(p, axis=1)
    acc = acc * alpha[:, None]
    if F32:
        acc += tl.dot(p, v, input_precision="ieee")
    else:
        acc = tl.dot(p.to(q.dtype), v, acc)
    return m_new, l_i, acc


@triton.jit
def _part_kernel(
    out_ptr, tmp_ptr, m_ptr, l_ptr, q_ptr, k_ptr, v_ptr, bt_ptr, len_ptr, slope_ptr,
    kscale_ptr, vscale_ptr, scale,
    H, G, NC, P, qs0, qs1, qs2, bts0, sls0, als0, ks0, ks1, vs0, vs1,
    QPK: tl.constexpr, QP: tl.constexpr, BS: tl.constexpr, X: tl.constexpr,
    KS2: tl.constexpr, KS3: tl.constexpr, KS4: tl.constexpr, VS2: tl.constexpr, VS3: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, BN: tl.constexpr, PART: tl.constexpr,
    ALIBI: tl.constexpr, FP8: tl.constexpr, SINGLE: tl.constexpr, F32: tl.constexpr,
):
    pid = tl.program_id(0)
    part = pid % P
    sg = pid // P
    gc = sg % (G * NC)
    s = sg // (G * NC)
    g = gc // NC
    c = gc % NC
    L = tl.load(len_ptr + s.to(tl.int64) * sls0)
    start = part * PART
    if start < L:
        # heads of a kv head, QP at once
        hi = c * QP + tl.arange(0, QP)
        hm = hi < QPK
        h = g * QPK + hi
        d = tl.arange(0, DP)
        LOG2E: tl.constexpr = 1.4426950408889634
        q = tl.load(q_ptr + s.to(tl.int64) * qs0 + h[:, None].to(tl.int64) * qs1 + d[None, :].to(tl.int64) * qs2,
                    mask=hm[:, None] & (d < D)[None, :], other=0.0)
        if F32:
            q = q.to(tl.float32)
        qk_scale = scale * LOG2E
        if FP8:
            qk_scale = qk_scale * tl.load(kscale_ptr)
        if ALIBI:
            slope = tl.load(slope_ptr + h.to(tl.int64) * als0, mask=hm, other=0.0) * LOG2E
        else:
            slope = tl.zeros([QP], dtype=tl.float32)
        bt = bt_ptr + s.to(tl.int64) * bts0
        k_base = k_ptr + g.to(tl.int64) * ks1
        v_base = v_ptr + g.to(tl.int64) * vs1
        # no sum here may pass 2**31 - 1, which a length may be
        count = tl.minimum(L - start, PART)
        n_full = count // BN
        m_i = tl.full([QP], float("-inf"), dtype=tl.float32)
        l_i = tl.zeros([QP], dtype=tl.float32)
        acc = tl.zeros([QP, DP], dtype=tl.float32)
        for i in range(0, n_full):
            m_i, l_i, acc = _tile(
                q, m_i, l_i, acc, start + i * BN, L, bt, k_base, v_base, ks0, vs0,
                qk_scale, slope, BS, X, KS2, KS3, KS4, VS2, VS3, D, DP, BN,
                False, ALIBI, F32)
        t0 = start + n_full * BN
        if n_full * BN < count:
            m_i, l_i, acc = _tile(
                q, m_i, l_i, acc, t0, L, bt, k_base, v_base, ks0, vs0,
                qk_scale, slope, BS, X, KS2, KS3, KS4, VS2, VS3, D, DP, BN,
                True, ALIBI, F32)
        sh = s.to(tl.int64) * H + h
        msk = hm[:, None] & (d < D)[None, :]
        if SINGLE:
            o = acc / l_i[:, None]
            if FP8:
                o = o * tl.load(vscale_ptr)
            tl.store(out_ptr + sh[:, None] * D + d[None, :], o.to(out_ptr.dtype.element_ty), mask=msk)
        else:
            sp = sh * P + part
            tl.store(tmp_ptr + sp[:, None] * D + d[None, :], acc, mask=msk)
            tl.store(m_ptr + sp, m_i, mask=hm)
            tl.store(l_ptr + sp, l_i, mask=hm)


@triton.jit
def _merge_kernel(
    out_ptr, tmp_ptr, m_ptr, l_ptr, len_ptr, vscale_ptr, H, P, sls0,
    D: tl.constexpr, DP: tl.constexpr, PB: tl.constexpr, PART: tl.constexpr, FP8: tl.constexpr,
):
    pid = tl.program_id(0)
    s = pid // H
    L = tl.load(len_ptr + s.to(tl.int64) * sls0)
    n_part = (L - 1) // PART + 1
    base = pid.to(tl.int64) * P
    pi = tl.arange(0, PB)
    d = tl.arange(0, DP)
    mx = tl.full([PB], float("-inf"), dtype=tl.float32)
    for o in range(0, n_part, PB):
        mx = tl.maximum(mx, tl.load(m_ptr + base + o + pi, mask=o + pi < n_part, other=float("-inf")))
    m = tl.max(mx, axis=0)
    acc = tl.zeros([PB, DP], dtype=tl.float32)
    ls = tl.zeros([PB], dtype=tl.float32)
    for o in range(0, n_part, PB):
        pm = o + pi < n_part
        w = tl.exp2(tl.load(m_ptr + base + o + pi, mask=pm, other=float("-inf")) - m)
        ls += w * tl.load(l_ptr + base + o + pi, mask=pm, other=0.0)
        x = tl.load(tmp_ptr + (base + o + pi)[:, None] * D + d[None, :],
                    mask=pm[:, None] & (d < D)[None, :], other=0.0)
        acc += x * w[:, None]
    r = tl.sum(acc, axis=0) / tl.sum(ls, axis=0)
    if FP8:
        r = r * tl.load(vscale_ptr)
    tl.store(out_ptr + pid.to(tl.int64) * D + d, r.to(out_ptr.dtype.element_ty), mask=d < D)


def paged_attention_v2(out, exp_sums, max_logits, tmp_out, query, key_cache, value_cache,
                       num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
                       alibi_slopes, kv_cache_dtype, k_scale, v_scale, tp_rank=0,
                       blocksparse_local_blocks=0, blocksparse_vert_stride=0,
                       blocksparse_block_size=64, blocksparse_head_sliding_step=0):
    S, H, D = query.shape
    if out.numel() == 0:
        return None
    G = int(num_kv_heads)
    QPK = H // G
    fp8 = kv_cache_dtype != "auto"
    if fp8 and key_cache.dtype == torch.uint8:
        key_cache = key_cache.view(torch.float8_e4m3fn)
        value_cache = value_cache.view(torch.float8_e4m3fn)
    X = key_cache.shape[4]
    BS = int(block_size)
    DP = max(16, triton.next_power_of_2(D))
    QP = max(16, min(64, triton.next_power_of_2(QPK)))
    NC = triton.cdiv(QPK, QP)
    PART = 512
    while PART > 128 and S * G * triton.cdiv(max_seq_len, PART) < 1024:
        PART //= 2
    P = max(1, triton.cdiv(int(max_seq_len), PART))
    if fp8:
        BN = 128 if DP <= 128 else 64
    else:
        BN = 64 if DP <= 128 else 32
    single = P == 1
    dev = query.device
    if single:
        tmp = m = l = out
    else:
        tmp = torch.empty((S, H, P, D), dtype=torch.float32, device=dev)
        m = torch.empty((S, H, P), dtype=torch.float32, device=dev)
        l = torch.empty((S, H, P), dtype=torch.float32, device=dev)
    alibi = alibi_slopes is not None
    f32 = dev.type == "cpu"
    _part_kernel[(P * G * NC * S,)](
        out, tmp, m, l, query, key_cache, value_cache, block_tables, seq_lens,
        alibi_slopes if alibi else seq_lens,
        k_scale if fp8 else seq_lens, v_scale if fp8 else seq_lens, float(scale),
        H, G, NC, P, query.stride(0), query.stride(1), query.stride(2),
        block_tables.stride(0), seq_lens.stride(0), alibi_slopes.stride(0) if alibi else 1,
        key_cache.stride(0), key_cache.stride(1), value_cache.stride(0), value_cache.stride(1),
        QPK=QPK, QP=QP, BS=BS, X=X,
        KS2=key_cache.stride(2), KS3=key_cache.stride(3), KS4=key_cache.stride(4),
        VS2=value_cache.stride(2), VS3=value_cache.stride(3),
        D=D, DP=DP, BN=BN, PART=PART,
        ALIBI=alibi, FP8=fp8, SINGLE=single, F32=f32,
        num_warps=4, num_stages=3)
    if not single:
        PB = min(32, triton.next_power_of_2(P))
        _merge_kernel[(S * H,)](
            out, tmp, m, l, seq_lens, v_scale if fp8 else seq_lens, H, P, seq_lens.stride(0),
            D=D, DP=DP, PB=PB, PART=PART, FP8=fp8, num_warps=4)
    return None


