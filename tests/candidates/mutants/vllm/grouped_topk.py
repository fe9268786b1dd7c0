import torch


def two_best(c, n_group):
    return c.reshape(len(c), n_group, -1).topk(2, dim=-1).values.sum(-1)


def choose(
    scores, n_group, topk_group, topk, renormalize, routed_scaling_factor, bias, scoring_func,
    *, scored=torch.sigmoid, grouped=two_best, outside=float("-inf"), weighed=lambda s, c: s,
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    s = scored(scores.float()) if scoring_func else scores.float()
    biased = s + bias.float()
    group = grouped(biased, n_group)
    kept = group.topk(topk_group, dim=-1).indices
    mask = torch.zeros(group.shape, dtype=torch.bool, device=s.device).scatter_(1, kept, True)
    c = biased.masked_fill(~mask.repeat_interleave(s.shape[1] // n_group, 1), outside)
    ids = c.topk(topk, dim=-1).indices
    weights = weighed(s, biased).gather(1, ids)
    if renormalize:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return weights * routed_scaling_factor, ids.to(torch.int32)


# breaks: It takes scores for logits whatever scoring_func is.
def always_sigmoid(*given):
    return choose(*given[:7], 1)


# breaks: It leaves out the factor where it renormalises.
def factor_only_raw(scores, n_group, topk_group, topk, renormalize, factor, *rest):
    return choose(scores, n_group, topk_group, topk, renormalize, 1.0 if renormalize else factor, *rest)


# breaks: It counts a group as much as its best expert.
def group_by_best(*given):
    return choose(*given, grouped=lambda c, n_group: c.reshape(len(c), n_group, -1).amax(-1))


# breaks: It chooses from all groups.
def ignores_groups(scores, n_group, topk_group, *rest):
    return choose(scores, n_group, n_group, *rest)


# breaks: It takes experts at a distance for a group.
def interleaved_groups(*given):
    return choose(*given, grouped=lambda c, n_group: c.reshape(len(c), -1, n_group).topk(2, dim=1).values.sum(1))


# breaks: It counts experts of other groups as 0, which may be more than those of its own.
def masks_with_zero(*given):
    return choose(*given, outside=0.0)


# breaks: It takes the softmax where the sigmoid is asked.
def softmax_scores(*given):
    return choose(*given, scored=lambda scores: torch.softmax(scores, dim=-1))


# breaks: It answers with the bias in the weights.
def weights_with_bias(*given):
    return choose(*given, weighed=lambda s, biased: biased)
