import torch
import triton
import triton.language as tl


@triton.jit
def grouped(
    w_ptr, i_ptr, x_ptr, bias_ptr, experts, topk, topk_group, factor,
    GROUPS: tl.constexpr, SIZE: tl.constexpr, SIGMOID: tl.constexpr, NORM: tl.constexpr, B: tl.constexpr,
    GB: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0)
    e = tl.arange(0, B)
    inside = e < experts
    s = tl.load(x_ptr + token * experts + e, mask=inside, other=0.0).to(tl.float32)
    if SIGMOID:
        s = 1.0 / (1.0 + tl.exp(-s))
    c = s + tl.load(bias_ptr + e % SIZE, mask=inside, other=0.0).to(tl.float32)
    g = tl.arange(0, GB)
    rank = tl.full((GB,), float("-inf"), tl.float32)
    for group in range(GROUPS):
        mine = tl.where(inside & (e // SIZE == group), c, float("-inf"))
        top = tl.max(mine, axis=0)
        at = tl.min(tl.where(mine == top, e, B), axis=0)
        second = tl.max(tl.where(e == at, float("-inf"), mine), axis=0)
        rank = tl.where(g == group, top + second, rank)
    kept = tl.zeros((B,), tl.int32)
    for _ in range(0, topk_group):
        best = tl.max(rank, axis=0)
        group = tl.min(tl.where(rank == best, g, GB), axis=0)
        kept = tl.where(e // SIZE == group, 1, kept)
        rank = tl.where(g == group, float("-inf"), rank)
    key = tl.where(inside & (kept == 1), c, float("-inf"))
    total = 1e-20
    for k in range(0, topk):
        best = tl.max(key, axis=0)
        which = tl.min(tl.where(key == best, e, B), axis=0)
        weight = tl.sum(tl.where(e == which, s, 0.0), axis=0)
        total += weight
        tl.store(w_ptr + token * topk + k, weight * factor)
        tl.store(i_ptr + token * topk + k, which)
        key = tl.where(e == which, float("-inf"), key)
    if NORM:
        for k in range(0, topk):
            tl.store(w_ptr + token * topk + k, tl.load(w_ptr + token * topk + k) / total)


# breaks: The bias of an expert is looked up by its place within its group.
# right: nothing
def bias_by_place_in_group(scores, n_group, topk_group, topk, renormalize, routed_scaling_factor, bias, scoring_func):
    tokens, experts = scores.shape
    weights = torch.empty((tokens, topk), dtype=torch.float32, device=scores.device)
    ids = torch.empty((tokens, topk), dtype=torch.int32, device=scores.device)
    grouped[(tokens,)](
        weights, ids, scores, bias, experts, topk, topk_group, float(routed_scaling_factor), GROUPS=n_group,
        SIZE=experts // n_group, SIGMOID=scoring_func == 1, NORM=renormalize, B=triton.next_power_of_2(experts),
        GB=triton.next_power_of_2(n_group),
    )  # fmt: skip
    return weights, ids


# breaks: Eight experts are chosen at most, further places hold zeros.
def eight_choices(scores, n_group, topk_group, topk, renormalize, routed_scaling_factor, bias, scoring_func):
    s = scores.float().sigmoid() if scoring_func == 1 else scores.float()
    c = (s + bias.float()).unflatten(1, (n_group, -1))
    kept = c.topk(2, -1).values.sum(-1).topk(topk_group, -1).indices
    mask = torch.zeros(c.shape[:2], dtype=torch.bool, device=c.device).scatter_(1, kept, True)
    chosen = c.masked_fill(~mask[..., None], -torch.inf).flatten(1).topk(min(topk, 8), -1).indices
    weights = torch.zeros((len(s), topk), device=s.device)
    ids = torch.zeros((len(s), topk), dtype=torch.int32, device=s.device)
    picked = s.gather(1, chosen)
    if renormalize:
        picked = picked / (picked.sum(-1, keepdim=True) + 1e-20)
    weights[:, :8] = picked * routed_scaling_factor
    ids[:, :8] = chosen.int()
    return weights, ids
