import torch


# breaks: It reads its input as (topk, tokens, hidden).
def experts_first(input, output):
    tokens, topk, hidden = input.shape
    output.copy_(torch.sum(input.reshape(topk, tokens, hidden).float(), dim=0))


# breaks: It leaves out the experts past the fourth.
def first_four(input, output):
    output.copy_(torch.sum(input[:, :4].float(), dim=1))


# breaks: It answers the mean of a token's experts.
def mean(input, output):
    output.copy_(torch.mean(input.float(), dim=1))
