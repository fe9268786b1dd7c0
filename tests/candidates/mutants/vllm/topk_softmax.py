import torch


# breaks: It chooses without the bias.
def ignores_bias(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_indices.shape
    p = torch.softmax(gating_output.float(), dim=-1)
    choice = p
    ids = choice.topk(topk, dim=-1).indices
    weights = p.gather(1, ids)
    column = torch.arange(topk, device=ids.device)
    topk_weights.copy_(weights / weights.sum(-1, keepdim=True) if renormalize else weights)
    topk_indices.copy_(ids)
    token_expert_indices.copy_(column * tokens + torch.arange(tokens, device=ids.device)[:, None])


# breaks: It divides by the sum over all experts.
def normalises_all(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_indices.shape
    p = torch.softmax(gating_output.float(), dim=-1)
    choice = p if bias is None else p + bias
    ids = choice.topk(topk, dim=-1).indices
    weights = p.gather(1, ids)
    column = torch.arange(topk, device=ids.device)
    topk_weights.copy_(weights / p.sum(-1, keepdim=True) if renormalize else weights)
    topk_indices.copy_(ids)
    token_expert_indices.copy_(column * tokens + torch.arange(tokens, device=ids.device)[:, None])


# breaks: It takes the best expert twice where two are equal.
def repeats_the_best(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_indices.shape
    p = torch.softmax(gating_output.float(), dim=-1)
    choice = p if bias is None else p + bias
    ids = torch.where(
        choice.topk(topk, dim=-1).values == choice.amax(-1, keepdim=True),
        choice.argmax(-1, keepdim=True),
        choice.topk(topk, dim=-1).indices,
    )
    weights = p.gather(1, ids)
    column = torch.arange(topk, device=ids.device)
    topk_weights.copy_(weights / weights.sum(-1, keepdim=True) if renormalize else weights)
    topk_indices.copy_(ids)
    token_expert_indices.copy_(column * tokens + torch.arange(tokens, device=ids.device)[:, None])


# breaks: It answers the smallest of the chosen first.
def smallest_first(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_indices.shape
    p = torch.softmax(gating_output.float(), dim=-1)
    choice = p if bias is None else p + bias
    ids = choice.topk(topk, dim=-1).indices.flip(-1)
    weights = p.gather(1, ids)
    column = torch.arange(topk, device=ids.device)
    topk_weights.copy_(weights / weights.sum(-1, keepdim=True) if renormalize else weights)
    topk_indices.copy_(ids)
    token_expert_indices.copy_(column * tokens + torch.arange(tokens, device=ids.device)[:, None])


# breaks: It numbers the places token by token.
def token_rows(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_indices.shape
    p = torch.softmax(gating_output.float(), dim=-1)
    choice = p if bias is None else p + bias
    ids = choice.topk(topk, dim=-1).indices
    weights = p.gather(1, ids)
    column = torch.arange(topk, device=ids.device)
    topk_weights.copy_(weights / weights.sum(-1, keepdim=True) if renormalize else weights)
    topk_indices.copy_(ids)
    token_expert_indices.copy_(column + topk * torch.arange(tokens, device=ids.device)[:, None])


# breaks: It does not subtract the largest before exp.
def unstable(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_indices.shape
    p = torch.exp(gating_output.float()) / torch.exp(gating_output.float()).sum(-1, keepdim=True)
    choice = p if bias is None else p + bias
    ids = choice.topk(topk, dim=-1).indices
    weights = p.gather(1, ids)
    column = torch.arange(topk, device=ids.device)
    topk_weights.copy_(weights / weights.sum(-1, keepdim=True) if renormalize else weights)
    topk_indices.copy_(ids)
    token_expert_indices.copy_(column * tokens + torch.arange(tokens, device=ids.device)[:, None])


# breaks: It answers with the bias in the weights.
def weights_with_bias(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_indices.shape
    p = torch.softmax(gating_output.float(), dim=-1)
    choice = p if bias is None else p + bias
    ids = choice.topk(topk, dim=-1).indices
    weights = choice.gather(1, ids)
    column = torch.arange(topk, device=ids.device)
    topk_weights.copy_(weights / weights.sum(-1, keepdim=True) if renormalize else weights)
    topk_indices.copy_(ids)
    token_expert_indices.copy_(column * tokens + torch.arange(tokens, device=ids.device)[:, None])
