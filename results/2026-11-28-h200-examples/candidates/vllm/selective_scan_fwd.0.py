"""selective_scan_fwd: Mamba's state space model, h = exp(dt * A) * h + dt * B * u and y = C . h + D * u.

A program has one channel of one sequence with all its states. It takes a tile of steps at a time by a parallel scan,
whose elements are pairs (a, b) of the map h -> a * h + b; the last column is the next tile's state. Tiles begin at
multiples of 16 steps, so that loads are aligned; steps outside the sequence are the map h -> h.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _then(a1, b1, a2, b2):
    """Two maps h -> a * h + b, one after the other."""
    return a1 * a2, a2 * b1 + b2


@triton.jit
def _exp(x):
    """exp of an argument reduced by a multiple of ln 2, in two parts, and clipped so that the power has a float32."""
    x = tl.minimum(tl.maximum(x, -110.0), 88.0)
    power = tl.floor(x * 1.4426950408889634 + 0.5)
    rest = x - power * 0.693359375
    rest = rest + power * 2.12194440054690583e-4
    return tl.exp2(rest * 1.4426950408889634) * tl.exp2(power)


@triton.jit
def _softplus(x):
    """log(1 + exp(x)), by the series of the inverse hyperbolic tangent where exp(x) is at most 1."""
    e = _exp(x)
    s = e / (2.0 + e)
    q = s * s
    series = 1.0 / 15.0
    series = series * q + 1.0 / 13.0
    series = series * q + 1.0 / 11.0
    series = series * q + 1.0 / 9.0
    series = series * q + 1.0 / 7.0
    series = series * q + 1.0 / 5.0
    series = series * q + 1.0 / 3.0
    small = 2.0 * s * (series * q + 1.0)
    result = tl.where(e <= 1.0, small, tl.log(1.0 + e))
    # Above 20 it is x to the last digit; the comparison is false for NaN, which stays NaN.
    return tl.where(x <= 20.0, result, x)


@triton.jit
def _last(x, STATES: tl.constexpr, STEPS: tl.constexpr):
    """The last column of (STATES, STEPS): by halves first, so that few elements are left to add up."""
    _, x = tl.split(tl.reshape(x, [STATES, STEPS // 2, 2]))
    _, x = tl.split(tl.reshape(x, [STATES, STEPS // 4, 2]))
    _, x = tl.split(tl.reshape(x, [STATES, STEPS // 8, 2]))
    i = tl.arange(0, STEPS // 8)
    return tl.sum(tl.where((i == STEPS // 8 - 1)[None, :], x, 0.0), axis=1)


@triton.jit
def _scan(
    u_ptr, delta_ptr, a_ptr, b_ptr, c_ptr, d_ptr, z_ptr, bias_ptr, start_ptr, slot_ptr, has_state_ptr, state_ptr,
    first_block_ptr, last_block_ptr, initial_ptr, chunk_start_ptr, last_chunk_ptr, length, channels, per_group, null,
    u_batch, u_row, delta_batch, delta_row, z_batch, z_row, a_row, a_state, b_batch, b_group, b_state,
    c_batch, c_group, c_state, d_stride, bias_stride, state_slot, state_row, state_state, slot_row, slot_column,
    N: tl.constexpr, STATES: tl.constexpr, STEPS: tl.constexpr, HAS_D: tl.constexpr, HAS_Z: tl.constexpr,
    HAS_BIAS: tl.constexpr, SOFTPLUS: tl.constexpr, RAGGED: tl.constexpr, SLOTS: tl.constexpr, HAS_STATE: tl.constexpr,
    CHUNKED: tl.constexpr,
):  # fmt: skip
    """RAGGED: sequences lie one behind the other; SLOTS: states lie in slots; CHUNKED: each chunk keeps a state."""
    sequence = (tl.program_id(0) // channels).to(tl.int64)
    channel = (tl.program_id(0) % channels).to(tl.int64)
    batch, start, end = sequence, tl.program_id(0) * 0, tl.program_id(0) * 0 + length
    if RAGGED:
        batch = sequence * 0
        start, end = tl.load(start_ptr + sequence), tl.load(start_ptr + sequence + 1)
    live = end > start
    slot = sequence.to(tl.int32)
    first_chunk, chunks = tl.program_id(0) * 0, tl.program_id(0) * 0 + 1
    first_block, last_block = first_chunk, first_chunk
    if CHUNKED:
        if sequence > 0:
            first_chunk = tl.load(last_chunk_ptr + sequence - 1) + 1
        chunks = tl.load(last_chunk_ptr + sequence) - first_chunk + 1
        first_block, last_block = tl.load(first_block_ptr + sequence), tl.load(last_block_ptr + sequence)
    elif SLOTS:
        slot = tl.load(slot_ptr + sequence * slot_row)
        live = live & (slot != null)
    if live:
        n = tl.arange(0, STATES)
        step = tl.arange(0, STEPS)
        group = channel // per_group
        # exp2 is cheaper than exp: the factor goes into A.
        a = tl.load(a_ptr + channel * a_row + n * a_state, mask=n < N, other=0.0) * 1.4426950408889634
        h = tl.zeros([STATES], dtype=tl.float32)
        states = state_ptr + channel * state_row + n * state_state
        if HAS_STATE:
            carried = tl.load(has_state_ptr + sequence) != 0
            initial = slot
            if CHUNKED:
                column = tl.load(initial_ptr + sequence, mask=carried, other=0).to(tl.int64)
                initial = tl.load(slot_ptr + sequence * slot_row + column * slot_column, mask=carried, other=0)
            at = states + initial.to(tl.int64) * state_slot
            h = tl.load(at, mask=(n < N) & carried, other=0.0).to(tl.float32)
        us = u_ptr + batch * u_batch + channel * u_row
        deltas = delta_ptr + batch * delta_batch + channel * delta_row
        zs = z_ptr + batch * z_batch + channel * z_row
        bs = (b_ptr + batch * b_batch + group * b_group + n.to(tl.int64) * b_state)[:, None]
        cs = (c_ptr + batch * c_batch + group * c_group + n.to(tl.int64) * c_state)[:, None]
        d, bias = 0.0, 0.0
        if HAS_D:
            d = tl.load(d_ptr + channel * d_stride)
        if HAS_BIAS:
            bias = tl.load(bias_ptr + channel * bias_stride)
        for chunk in range(chunks):
            begin, stop = start, end
            if CHUNKED:
                begin = tl.load(chunk_start_ptr + first_chunk + chunk)
                stop = tl.load(chunk_start_ptr + first_chunk + chunk + 1)
                if not RAGGED:
                    skipped = tl.load(chunk_start_ptr + first_chunk)
                    begin, stop = begin - skipped, stop - skipped
            for tile in range(begin // 16 * 16, stop, STEPS):
                t = tile + step
                own = (t >= begin) & (t < stop)
                u = tl.where(own, tl.load(us + t, mask=t < length, other=0.0).to(tl.float32), 0.0)
                dt = tl.load(deltas + t, mask=t < length, other=0.0).to(tl.float32)
                if HAS_BIAS:
                    dt += bias
                if SOFTPLUS:
                    dt = _softplus(dt)
                dt = tl.where(own, dt, 0.0)
                inside = (n < N)[:, None] & (t < length)[None, :]
                b = tl.load(bs + t[None, :], mask=inside, other=0.0).to(tl.float32)
                factor = tl.exp2(dt[None, :] * a[:, None])
                term = tl.where(own[None, :], (dt * u)[None, :] * b, 0.0)
                term = tl.where((step == 0)[None, :], term + factor * h[:, None], term)
                _, hs = tl.associative_scan((factor, term), 1, _then)
                y = tl.sum(hs * tl.load(cs + t[None, :], mask=inside, other=0.0).to(tl.float32), axis=0)
                h = _last(hs, STATES, STEPS)
                if HAS_D:
                    y += d * u
                tl.store(deltas + t, y.to(delta_ptr.dtype.element_ty), mask=own)
                if HAS_Z:
                    z = tl.load(zs + t, mask=t < length, other=0.0).to(tl.float32)
                    # exp(-|z|) as a square, which does not vanish before its product with y and z does.
                    half = _exp(-0.5 * tl.abs(z))
                    share = tl.where(z < 0.0, half, 1.0)
                    gated = ((y * z) * share) / (1.0 + half * half) * share
                    tl.store(zs + t, gated.to(z_ptr.dtype.element_ty), mask=own)
            to = slot
            if CHUNKED:
                block = tl.where(chunk == chunks - 1, last_block, first_block + chunk)
                to = tl.load(slot_ptr + sequence * slot_row + block.to(tl.int64) * slot_column)
            tl.store(states + to.to(tl.int64) * state_slot, h.to(state_ptr.dtype.element_ty), mask=n < N)


def _strides(x, ragged, count):
    """The last dimension's elements lie side by side; sequences that lie one behind the other have no batch."""
    if x is None:
        return (0,) * count
    return (0, *x.stride()[: count - 1]) if ragged else x.stride()[:count]


def selective_scan_fwd(
    u, delta, A, B, C, D_, z_, delta_bias_, delta_softplus, query_start_loc, cache_indices, has_initial_state,
    ssm_states, null_block_id, block_size, block_idx_first_scheduled_token, block_idx_last_scheduled_token,
    initial_state_idx, cu_chunk_seqlen, last_chunk_indices,
):  # fmt: skip
    """u, delta, z_: (batch, channels, length), or (channels, length) with query_start_loc; A: (channels, n).

    B, C: (…, groups, n, length). y replaces delta, y times silu(z) replaces z_; the last states go to ssm_states.
    """
    ragged = query_start_loc is not None
    channels, length = u.shape[-2:]
    sequences = query_start_loc.shape[0] - 1 if ragged else u.shape[0]
    if u.numel() == 0 or sequences <= 0:
        return
    chunked = cu_chunk_seqlen is not None and last_chunk_indices is not None
    slots, has_state = cache_indices is not None, has_initial_state is not None
    states = max(2, triton.next_power_of_2(A.shape[1]))
    steps = 128 if states <= 64 else 64
    _scan[(channels * sequences,)](
        u, delta, A, B, C, D_, z_ if z_ is not None else delta, delta_bias_, query_start_loc, cache_indices,
        has_initial_state.view(torch.uint8) if has_state else None, ssm_states, block_idx_first_scheduled_token,
        block_idx_last_scheduled_token, initial_state_idx, cu_chunk_seqlen, last_chunk_indices,
        length, channels, channels // B.shape[-3], int(null_block_id),
        *_strides(u, ragged, 2), *_strides(delta, ragged, 2), *_strides(z_, ragged, 2), A.stride(0), A.stride(1),
        *_strides(B, ragged, 3), *_strides(C, ragged, 3), D_.stride(0) if D_ is not None else 0,
        delta_bias_.stride(0) if delta_bias_ is not None else 0, *ssm_states.stride(),
        cache_indices.stride(0) if slots else 0, cache_indices.stride(1) if slots and cache_indices.dim() > 1 else 0,
        N=A.shape[1], STATES=states, STEPS=steps, HAS_D=D_ is not None, HAS_Z=z_ is not None,
        HAS_BIAS=delta_bias_ is not None, SOFTPLUS=bool(delta_softplus), RAGGED=ragged, SLOTS=slots,
        HAS_STATE=has_state, CHUNKED=chunked, num_warps=max(1, min(8, states * steps // 2048)),
    )  # fmt: skip
