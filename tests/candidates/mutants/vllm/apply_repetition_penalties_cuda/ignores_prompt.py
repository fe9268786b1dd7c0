# outcome: wrong value
# breaks: It penalises the tokens of the output alone.

import torch


def apply_repetition_penalties_cuda(logits, prompt_mask, output_mask, repetition_penalties):
    penalty = repetition_penalties.double()[:, None]
    scores = logits.double()
    penalised = torch.where(scores > 0, scores / penalty, scores * penalty)
    logits.copy_(torch.where(output_mask, penalised, scores))
