import torch
import triton
import triton.language as tl


@triton.jit
def _comb(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def _exp(x):
    # exp with a reduced argument; x is clipped so that 2**n stays in range, and below is 0
    x = tl.minimum(tl.maximum(x, -120.0), 88.0)
    n = tl.floor(x * 1.4426950408889634 + 0.5)
    r = x - n * 0.693359375
    r = r + n * 2.12194440054690583e-4
    return tl.exp2(r * 1.4426950408889634) * tl.exp2(n)


@triton.jit
def _softplus(x):
    e = _exp(x)
    s = e / (2.0 + e)
    q = s * s
    p = 1.0 / 15.0
    p = p * q + 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 1.0 / 5.0
    p = p * q + 1.0 / 3.0
    small = 2.0 * s * (p * q + 1.0)
    r = tl.where(e <= 1.0, small, tl.log(1.0 + e))
    # a minimum and a maximum drop NaN
    return tl.where((x > 20.0) | (x != x), x, r)


@triton.jit
def _gate(y, z):
    # y * z * sigmoid(z); below 0 exp(z) is split in two, so that it may be far below what float32 holds
    h = _exp(tl.abs(z) * -0.5)
    e = h * h
    w = tl.where(z < 0.0, h, 1.0)
    return (y * w) * (z * w) / (1.0 + e)


@triton.jit(do_not_specialize=["total", "grid0"])
def _scan_kernel(
    u_ptr, dl_ptr, a_ptr, b_ptr, c_ptr, d_ptr, z_ptr, bias_ptr,
    qsl_ptr, ci_ptr, his_ptr, st_ptr, bf_ptr, bl_ptr, isi_ptr, cu_ptr, lci_ptr,
    T, dim, total, grid0, per_group, null_id,
    ub, ur, db, dr, zb, zr, as0, as1, bb, bg, bn, cb, cg, cn, ds, bs_,
    ss0, ss1, ss2, cis0, cis1,
    DS: tl.constexpr, NP: tl.constexpr, BT: tl.constexpr,
    HAS_D: tl.constexpr, HAS_Z: tl.constexpr, HAS_BIAS: tl.constexpr, SOFTPLUS: tl.constexpr,
    VARLEN: tl.constexpr, HAS_CI: tl.constexpr, HAS_HIS: tl.constexpr, APC: tl.constexpr,
    BIG: tl.constexpr,
):
    # programs run over channels first, then over sequences, mostly in the grid's first dimension
    pid = tl.program_id(1).to(tl.int64) * grid0 + tl.program_id(0)
    ok = pid < total
    pid = tl.minimum(pid, total - 1)
    s64 = pid // dim
    d64 = pid - s64 * dim
    s = s64.to(tl.int32)
    if VARLEN:
        start = tl.load(qsl_ptr + s64)
        end = tl.load(qsl_ptr + s64 + 1)
        bat = s64 * 0
        if BIG:
            start = start.to(tl.int64)
            end = end.to(tl.int64)
    else:
        if BIG:
            start = s64 * 0
        else:
            start = s * 0
        end = start + T
        bat = s64
    slot = s
    live = ok & (end > start)
    if APC:
        first_chunk = s * 0
        if s > 0:
            first_chunk = tl.load(lci_ptr + s64 - 1) + 1
        n_chunks = tl.load(lci_ptr + s64) - first_chunk + 1
        blk_first = tl.load(bf_ptr + s64)
        blk_last = tl.load(bl_ptr + s64)
    else:
        first_chunk = s * 0
        n_chunks = s * 0 + 1
        blk_first = s * 0
        blk_last = s * 0
        if HAS_CI:
            slot = tl.load(ci_ptr + s64 * cis0)
            live = live & (slot != null_id)
    if live:
        n = tl.arange(0, NP)
        nm = n < DS
        ti = tl.arange(0, BT)
        if BIG:
            n = n.to(tl.int64)
        g = d64 // per_group
        A = tl.load(a_ptr + d64 * as0 + n * as1, mask=nm, other=0.0) * 1.4426950408889634
        h = tl.zeros([NP], dtype=tl.float32)
        st_row = st_ptr + d64 * ss1 + n * ss2
        if HAS_HIS:
            if tl.load(his_ptr + s64) != 0:
                islot = slot
                if APC:
                    islot = tl.load(ci_ptr + s64 * cis0 + tl.load(isi_ptr + s64).to(tl.int64) * cis1)
                h = tl.load(st_row + islot.to(tl.int64) * ss0, mask=nm, other=0.0).to(tl.float32)
        u_row = u_ptr + bat * ub + d64 * ur
        dl_row = dl_ptr + bat * db + d64 * dr
        z_row = z_ptr + bat * zb + d64 * zr
        b_row = b_ptr + bat * bb + g * bg
        c_row = c_ptr + bat * cb + g * cg
        if HAS_D:
            dd = tl.load(d_ptr + d64 * ds)
        else:
            dd = 0.0
        if HAS_BIAS:
            bias = tl.load(bias_ptr + d64 * bs_)
        else:
            bias = 0.0
        for ch in range(0, n_chunks):
            cs = start
            ce = end
            if APC:
                cs = tl.load(cu_ptr + first_chunk + ch)
                ce = tl.load(cu_ptr + first_chunk + ch + 1)
                if not VARLEN:
                    off = tl.load(cu_ptr + first_chunk)
                    cs = cs - off
                    ce = ce - off
                if BIG:
                    cs = cs.to(tl.int64)
                    ce = ce.to(tl.int64)
            lo = (cs // 16) * 16
            for t0 in range(lo, ce, BT):
                t = t0 + ti
                inr = t < T
                tm = (t >= cs) & (t < ce)
                u = tl.load(u_row + t, mask=inr, other=0.0).to(tl.float32)
                dt = tl.load(dl_row + t, mask=inr, other=0.0).to(tl.float32)
                u = tl.where(tm, u, 0.0)
                if HAS_BIAS:
                    dt = dt + bias
                if SOFTPLUS:
                    dt = _softplus(dt)
                dt = tl.where(tm, dt, 0.0)
                dtu = dt * u
                m2 = nm[:, None] & inr[None, :]
                Bv = tl.load(b_row + n[:, None] * bn + t[None, :], mask=m2, other=0.0).to(tl.float32)
                a = tl.exp2(dt[None, :] * A[:, None])
                b = tl.where(tm[None, :], dtu[None, :] * Bv, 0.0)
                b = tl.where((ti == 0)[None, :], b + a * h[:, None], b)
                _, hs = tl.associative_scan((a, b), 1, _comb)
                Cv = tl.load(c_row + n[:, None] * cn + t[None, :], mask=m2, other=0.0).to(tl.float32)
                y = tl.sum(hs * Cv, axis=0)
                # columns out of the sequence leave h as it is: the tile's last is the newest
                _, e1 = tl.split(tl.reshape(hs, [NP, BT // 2, 2]))
                _, e2 = tl.split(tl.reshape(e1, [NP, BT // 4, 2]))
                _, e3 = tl.split(tl.reshape(e2, [NP, BT // 8, 2]))
                li = tl.arange(0, BT // 8)
                h = tl.sum(tl.where((li == BT // 8 - 1)[None, :], e3, 0.0), axis=1)
                if HAS_D:
                    y = y + dd * u
                tl.store(dl_row + t, y.to(dl_ptr.dtype.element_ty), mask=tm)
                if HAS_Z:
                    z = tl.load(z_row + t, mask=inr, other=0.0).to(tl.float32)
                    zz = _gate(y, z)
                    tl.store(z_row + t, zz.to(z_ptr.dtype.element_ty), mask=tm)
            oslot = slot
            if APC:
                bi = blk_first + ch
                bi = tl.where(ch == n_chunks - 1, blk_last, bi)
                oslot = tl.load(ci_ptr + s64 * cis0 + bi.to(tl.int64) * cis1)
            tl.store(st_row + oslot.to(tl.int64) * ss0, h.to(st_ptr.dtype.element_ty), mask=nm)


def selective_scan_fwd(u, delta, A, B, C, D_, z_, delta_bias_, delta_softplus, query_start_loc,
                       cache_indices, has_initial_state, ssm_states, null_block_id, block_size,
                       block_idx_first_scheduled_token, block_idx_last_scheduled_token,
                       initial_state_idx, cu_chunk_seqlen, last_chunk_indices):
    varlen = query_start_loc is not None
    dim = u.shape[-2]
    T = u.shape[-1]
    if u.numel() == 0:
        return None
    dstate = A.shape[1]
    if varlen:
        seqs = query_start_loc.shape[0] - 1
        groups = B.shape[0]
        ub = db = zb = bb = cb = 0
        ur, dr = u.stride(0), delta.stride(0)
        zr = z_.stride(0) if z_ is not None else 0
        bg, bn = B.stride(0), B.stride(1)
        cg, cn = C.stride(0), C.stride(1)
    else:
        seqs = u.shape[0]
        groups = B.shape[1]
        ub, ur = u.stride(0), u.stride(1)
        db, dr = delta.stride(0), delta.stride(1)
        zb, zr = (z_.stride(0), z_.stride(1)) if z_ is not None else (0, 0)
        bb, bg, bn = B.stride(0), B.stride(1), B.stride(2)
        cb, cg, cn = C.stride(0), C.stride(1), C.stride(2)
    if seqs <= 0:
        return None
    apc = cu_chunk_seqlen is not None and last_chunk_indices is not None
    has_ci = cache_indices is not None
    has_his = has_initial_state is not None
    NP = max(2, triton.next_power_of_2(dstate))
    BT = 128 if NP <= 64 else 64
    warps = max(1, min(8, NP * BT // 2048))
    dummy = A
    idummy = query_start_loc if varlen else A
    total = dim * seqs
    grid0 = min(total, 1 << 30)
    # tokens and the rows of B and C in 64 bits only where they need them
    big = max(T, NP * T, (dstate - 1) * max(bn, cn, A.stride(1), ssm_states.stride(2)) + T) >= 2 ** 31 - 2 ** 16
    _scan_kernel[(grid0, triton.cdiv(total, grid0))](
        u, delta, A, B, C,
        D_ if D_ is not None else dummy,
        z_ if z_ is not None else delta,
        delta_bias_ if delta_bias_ is not None else dummy,
        query_start_loc if varlen else idummy,
        cache_indices if has_ci else idummy,
        has_initial_state.view(torch.uint8) if has_his else idummy,
        ssm_states,
        block_idx_first_scheduled_token if apc else idummy,
        block_idx_last_scheduled_token if apc else idummy,
        initial_state_idx if apc else idummy,
        cu_chunk_seqlen if apc else idummy,
        last_chunk_indices if apc else idummy,
        T, dim, total, grid0, dim // groups, int(null_block_id),
        ub, ur, db, dr, zb, zr, A.stride(0), A.stride(1), bb, bg, bn, cb, cg, cn,
        D_.stride(0) if D_ is not None else 0,
        delta_bias_.stride(0) if delta_bias_ is not None else 0,
        ssm_states.stride(0), ssm_states.stride(1), ssm_states.stride(2),
        cache_indices.stride(0) if has_ci else 0,
        cache_indices.stride(1) if (has_ci and cache_indices.dim() > 1) else 0,
        DS=dstate, NP=NP, BT=BT,
        HAS_D=D_ is not None, HAS_Z=z_ is not None, HAS_BIAS=delta_bias_ is not None,
        SOFTPLUS=bool(delta_softplus), VARLEN=varlen, HAS_CI=has_ci, HAS_HIS=has_his, APC=apc, BIG=big,
        num_warps=warps)
    return None


