import torch
import torch.nn.functional as F


# breaks: A channel's states are kept in sixteen lanes, and states from 16 on are left out.
def sixteen_states(
    u, delta, A, B, C, D_, z_, delta_bias_, delta_softplus, query_start_loc, cache_indices, has_initial_state,
    ssm_states, null_block_id, block_size, first_block, last_block, initial_block, chunk_ends, last_chunks,
):  # fmt: skip
    for s in range(len(u) if query_start_loc is None else len(query_start_loc) - 1):
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
            slot = stores[x.shape[-1] - 1] = int(cache_indices[s])
        else:
            slot = int(cache_indices[s, int(initial_block[s])])
            chunk = int(last_chunks[s - 1]) + 1 if s else 0
            for each in range(chunk, int(last_chunks[s]) + 1):
                where = last_block[s] if each == last_chunks[s] else int(first_block[s]) + each - chunk
                stores[int(chunk_ends[each + 1]) - 1 - span.start] = int(cache_indices[s, where])
        if cache_indices is not None and slot == null_block_id:
            continue
        group = torch.arange(len(x), device=x.device) // (len(x) // len(b))
        step = dt.double() + (0 if delta_bias_ is None else delta_bias_.double()[:, None])
        step = F.softplus(step) if delta_softplus else step
        h = torch.zeros_like(ssm_states[0, :, :16]).double()
        if has_initial_state is not None and has_initial_state[s]:
            h = ssm_states[slot, :, :16].double()
        for t in range(x.shape[-1]):
            d = step[:, t, None]
            h = torch.exp(d * A[:, :16].double()) * h + d * x[:, t, None].double() * b[group, :16, t].double()
            y = (h * c[group, :16, t].double()).sum(-1)
            y = y if D_ is None else y + D_ * x[:, t].double()
            dt[:, t] = y.to(dt.dtype)
            if z is not None:
                z[:, t] = (y * F.silu(z[:, t].double())).to(z.dtype)
            if t in stores:
                ssm_states[stores[t], :, :16] = h.to(ssm_states.dtype)


# breaks: The softplus takes exp of large steps as well, which overflows from 88 on.
def softplus_overflows(
    u, delta, A, B, C, D_, z_, delta_bias_, delta_softplus, query_start_loc, cache_indices, has_initial_state,
    ssm_states, null_block_id, block_size, first_block, last_block, initial_block, chunk_ends, last_chunks,
):  # fmt: skip
    for s in range(len(u) if query_start_loc is None else len(query_start_loc) - 1):
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
            slot = stores[x.shape[-1] - 1] = int(cache_indices[s])
        else:
            slot = int(cache_indices[s, int(initial_block[s])])
            chunk = int(last_chunks[s - 1]) + 1 if s else 0
            for each in range(chunk, int(last_chunks[s]) + 1):
                where = last_block[s] if each == last_chunks[s] else int(first_block[s]) + each - chunk
                stores[int(chunk_ends[each + 1]) - 1 - span.start] = int(cache_indices[s, where])
        if cache_indices is not None and slot == null_block_id:
            continue
        group = torch.arange(len(x), device=x.device) // (len(x) // len(b))
        step = dt.double() + (0 if delta_bias_ is None else delta_bias_.double()[:, None])
        step = torch.log1p(step.float().exp()).double() if delta_softplus else step
        h = torch.zeros_like(ssm_states[0]).double()
        if has_initial_state is not None and has_initial_state[s]:
            h = ssm_states[slot].double()
        for t in range(x.shape[-1]):
            d = step[:, t, None]
            h = torch.exp(d * A.double()) * h + d * x[:, t, None].double() * b[group, :, t].double()
            y = (h * c[group, :, t].double()).sum(-1)
            y = y if D_ is None else y + D_ * x[:, t].double()
            dt[:, t] = y.to(dt.dtype)
            if z is not None:
                z[:, t] = (y * F.silu(z[:, t].double())).to(z.dtype)
            if t in stores:
                ssm_states[stores[t]] = h.to(ssm_states.dtype)
