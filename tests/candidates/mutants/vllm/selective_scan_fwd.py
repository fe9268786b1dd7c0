import torch
import torch.nn.functional as F


def groups(channels, count):
    return channels // (len(channels) // count)


def starts(has_initial_state, s):
    return has_initial_state is not None and has_initial_state[s]


def gated(y, z):
    return y * F.silu(z.double())


def kept(h, dtype):
    return h


def scan(
    u, delta, A, B, C, D_, z_, delta_bias_, delta_softplus, query_start_loc, cache_indices, has_initial_state,
    ssm_states, null_block_id, block_size, first_block, last_block, initial_block, chunk_ends, last_chunks,
    *, groups=groups, starts=starts, gated=gated, kept=kept, slot_is_index=False, last_only=False, pads=True,
):  # fmt: skip
    """The right scan; what follows the star is what a wrong one does otherwise."""
    count = len(u) if query_start_loc is None else len(query_start_loc) - 1
    for s in range(count):
        if query_start_loc is None:
            x, dt, b, c, z = u[s], delta[s], B[s], C[s], None if z_ is None else z_[s]
        else:
            span = slice(int(query_start_loc[s]), int(query_start_loc[s + 1]))
            x, dt, b, c = (each[..., span] for each in (u, delta, B, C))
            z = None if z_ is None else z_[..., span]
        stores = {}
        if cache_indices is None:
            slot = stores[x.shape[-1] - 1] = s
        elif first_block is None:
            slot = int(cache_indices[s])
            stores[x.shape[-1] - 1] = s if slot_is_index else slot
        else:
            slot = int(cache_indices[s, int(initial_block[s])])
            chunk = int(last_chunks[s - 1]) + 1 if s else 0
            block = int(first_block[s])
            for each in range(chunk, int(last_chunks[s]) + 1):
                where = last_block[s] if each == last_chunks[s] else block + each - chunk
                if each == last_chunks[s] or not last_only:
                    stores[int(chunk_ends[each + 1]) - 1 - span.start] = int(cache_indices[s, where])
        if pads and cache_indices is not None and slot == null_block_id:
            continue
        group = groups(torch.arange(len(x), device=x.device), len(b))
        step = dt.double() + (0 if delta_bias_ is None else delta_bias_.double()[:, None])
        step = F.softplus(step) if delta_softplus else step
        h = torch.zeros_like(ssm_states[0]).double()
        if starts(has_initial_state, s):
            h = ssm_states[slot].double()
        for t in range(x.shape[-1]):
            d = step[:, t, None]
            h = kept(
                torch.exp(d * A.double()) * h + d * x[:, t, None].double() * b[group, :, t].double(), ssm_states.dtype
            )
            y = (h * c[group, :, t].double()).sum(-1)
            y = y if D_ is None else y + D_ * x[:, t].double()
            dt[:, t] = y.to(dt.dtype)
            if z is not None:
                z[:, t] = gated(y, z[:, t]).to(z.dtype)
            if t in stores:
                ssm_states[stores[t]] = h.to(ssm_states.dtype)


# breaks: It starts from what the slot holds, whatever has_initial_state says.
def always_initial_state(*given):
    scan(*given, starts=lambda *_: True)


# breaks: It gives channels their groups in turn.
def groups_interleaved(*given):
    scan(*given, groups=lambda channels, count: channels % count)


# breaks: It starts every sequence at zero.
def ignores_initial_state(*given):
    scan(*given, starts=lambda *_: False)


# breaks: It takes the number of a sequence for its slot.
def index_for_slot(*given):
    scan(*given, slot_is_index=True)


# breaks: It keeps no state but the last.
def last_state_only(*given):
    scan(*given, last_only=True)


# breaks: It leaves the gate out.
def no_gate(*given):
    scan(*given, gated=lambda y, z: y)


# breaks: It rounds the state to the dtype of its slots at every token.
def state_rounded(*given):
    scan(*given, kept=lambda h, dtype: h.to(dtype).double())


# breaks: It computes padding sequences, too.
def touches_padding(*given):
    scan(*given, pads=False)
