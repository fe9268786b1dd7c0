import torch
import triton
import triton.language as tl


@triton.jit
def _tile(acc, mi, li, q, kb, vb, btp, bt1, kbs, vbs, start, L, sm, slope, BS: tl.constexpr, X: tl.constexpr,
          D: tl.constexpr, DP: tl.constexpr, BT: tl.constexpr, ALIBI: tl.constexpr, LAST: tl.constexpr):
    t = start + tl.arange(0, BT)
    col = t // BS
    pl = t % BS
    inb = col * BS < L
    if LAST:
        blk = tl.load(btp + col * bt1, mask=inb, other=0).to(tl.int64)
    else:
        blk = tl.load(btp + col * bt1).to(tl.int64)
    d = tl.arange(0, DP)
    kp = kb + (blk * kbs + pl * X)[:, None] + ((d // X) * (BS * X) + d % X)[None, :]
    vp = vb + (d * BS)[:, None] + (blk * vbs + pl)[None, :]
    if LAST:
        # whole blocks are read, what lies behind the sequence's end is thrown away
        k = tl.load(kp, mask=inb[:, None] & (d < D)[None, :], other=0.0)
        v = tl.load(vp, mask=(d < D)[:, None] & inb[None, :], other=0.0)
    elif D != DP:
        k = tl.load(kp, mask=(d < D)[None, :], other=0.0)
        v = tl.load(vp, mask=(d < D)[:, None], other=0.0)
    else:
        k = tl.load(kp)
        v = tl.load(vp)
    k = k.to(q.dtype)
    v = v.to(q.dtype)
    s = tl.dot(q, tl.trans(k)) * sm
    if ALIBI:
        s += slope[:, None] * (t - L + 1).to(tl.float32)[None, :]
    if LAST:
        s = tl.where((t < L)[None, :], s, float("-inf"))
        v = tl.where((t < L)[None, :], v, 0.0)
    mn = tl.maximum(mi, tl.max(s, axis=1))
    al = tl.exp2(mi - mn)
    p = tl.exp2(s - mn[:, None])
    li = li * al + tl.sum(p, axis=1)
    acc = acc * al[:, None]
    acc = tl.dot(p.to(q.dtype), tl.trans(v), acc)
    return acc, mn, li


@triton.jit
def _attn_kernel(Out, Q, KC, VC, BTab, SL, AL, KS, VS, PO, PM, PL, scale, H, KVH, G, S, HB,
                 q0, q1, kbs, khs, vbs, vhs, bt0, bt1,
                 BS: tl.constexpr, X: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr,
                 BT: tl.constexpr, ALIBI: tl.constexpr, FP8: tl.constexpr, SPLIT: tl.constexpr):
    pid = tl.program_id(0)
    sp = pid % S
    rest = pid // S
    hb = rest % HB  # heads of one key head are cut into parts of BM
    rest = rest // HB
    g = rest % KVH
    seq = rest // KVH
    L = tl.load(SL + seq)
    nt = tl.cdiv(L, BT)
    per = tl.cdiv(nt, S)
    lo = sp * per
    hi = tl.minimum(lo + per, nt)
    if lo < hi:
        seq64 = seq.to(tl.int64)
        r = hb * BM + tl.arange(0, BM)
        h = g * G + r
        d = tl.arange(0, DP)
        hm = r < G
        q = tl.load(Q + seq64 * q0 + (h.to(tl.int64) * q1)[:, None] + d[None, :], mask=hm[:, None] & (d < D)[None, :],
                    other=0.0)
        sm = scale * 1.4426950408889634
        vsc = 1.0
        if FP8:
            sm = sm * tl.load(KS)
            vsc = vsc * tl.load(VS)
        slope = tl.zeros([BM], dtype=tl.float32)
        if ALIBI:
            slope = tl.load(AL + h, mask=hm, other=0.0) * 1.4426950408889634
        g64 = g.to(tl.int64)
        kb = KC + g64 * khs
        vb = VC + g64 * vhs
        btp = BTab + seq64 * bt0
        acc = tl.zeros([BM, DP], dtype=tl.float32)
        mi = tl.full([BM], float("-inf"), dtype=tl.float32)
        li = tl.zeros([BM], dtype=tl.float32)
        full = L // BT
        for i in range(lo, tl.minimum(hi, full)):
            acc, mi, li = _tile(acc, mi, li, q, kb, vb, btp, bt1, kbs, vbs, i * BT, L, sm, slope,
                                BS, X, D, DP, BT, ALIBI, False)
        if hi > full:
            acc, mi, li = _tile(acc, mi, li, q, kb, vb, btp, bt1, kbs, vbs, full * BT, L, sm, slope,
                                BS, X, D, DP, BT, ALIBI, True)
        row = seq64 * H + h
        if SPLIT:
            po = (row * S + sp)
            tl.store(PO + (po * DP)[:, None] + d[None, :], acc * vsc, mask=hm[:, None])
            tl.store(PM + po, mi, mask=hm)
            tl.store(PL + po, li, mask=hm)
        else:
            o = acc * vsc / li[:, None]
            tl.store(Out + (row * D)[:, None] + d[None, :], o.to(Out.dtype.element_ty),
                     mask=hm[:, None] & (d < D)[None, :])


@triton.jit
def _join_kernel(Out, SL, PO, PM, PL, H, S, D: tl.constexpr, DP: tl.constexpr, BT: tl.constexpr,
                 SP: tl.constexpr):
    row = tl.program_id(0)
    seq = row // H
    L = tl.load(SL + seq)
    nt = tl.cdiv(L, BT)
    per = tl.cdiv(nt, S)
    used = tl.cdiv(nt, per)
    s = tl.arange(0, SP)
    d = tl.arange(0, DP)
    um = s < used
    row64 = row.to(tl.int64)
    po = row64 * S + s
    m = tl.load(PM + po, mask=um, other=float("-inf"))
    l = tl.load(PL + po, mask=um, other=0.0)
    a = tl.load(PO + (po * DP)[:, None] + d[None, :], mask=um[:, None], other=0.0)
    w = tl.exp2(m - tl.max(m, axis=0))
    tot = tl.sum(l * w, axis=0)
    o = tl.sum(a * w[:, None], axis=0) / tot
    tl.store(Out + row64 * D + d, o.to(Out.dtype.element_ty), mask=d < D)


def paged_attention_v1(out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens,
                       block_size, max_seq_len, alibi_slopes, kv_cache_dtype, k_scale, v_scale, tp_rank=0,
                       blocksparse_local_blocks=0, blocksparse_vert_stride=0, blocksparse_block_size=64,
                       blocksparse_head_sliding_step=0):
    NS, H, D = query.shape
    if NS == 0 or H == 0:
        return None
    KVH = int(num_kv_heads)
    G = H // KVH
    fp8 = kv_cache_dtype != 'auto'
    X = 16 // key_cache.element_size()
    BS = value_cache.shape[3]
    DP = max(16, triton.next_power_of_2(D))
    BM = min(64, max(16, triton.next_power_of_2(G)))
    HB = triton.cdiv(G, BM)
    BT = 64 if DP <= 256 else 32
    base = NS * KVH * HB
    S = triton.cdiv(792, base)
    S = max(1, min(S, triton.cdiv(int(max_seq_len), 256), 64))
    dev = query.device
    if S > 1:
        PO = torch.empty((NS * H * S, DP), dtype=torch.float32, device=dev)
        PM = torch.empty((NS * H * S,), dtype=torch.float32, device=dev)
        PL = torch.empty((NS * H * S,), dtype=torch.float32, device=dev)
    else:
        PO = PM = PL = None
    stages = 3 if DP <= 128 else 2
    _attn_kernel[(base * S,)](
        out, query, key_cache, value_cache, block_tables, seq_lens, alibi_slopes, k_scale, v_scale,
        PO, PM, PL, float(scale), H, KVH, G, S, HB, query.stride(0), query.stride(1),
        key_cache.stride(0), key_cache.stride(1), value_cache.stride(0), value_cache.stride(1),
        block_tables.stride(0), block_tables.stride(1),
        BS=BS, X=X, D=D, DP=DP, BM=BM, BT=BT, ALIBI=alibi_slopes is not None, FP8=fp8, SPLIT=S > 1,
        num_warps=4, num_stages=stages)
    if S > 1:
        _join_kernel[(NS * H,)](out, seq_lens, PO, PM, PL, H, S, D=D, DP=DP, BT=BT,
                                SP=triton.next_power_of_2(S), num_warps=4)
    return None
