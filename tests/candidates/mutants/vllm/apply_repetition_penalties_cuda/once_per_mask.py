# outcome: wrong value
# breaks: It penalises a token twice that stands in the prompt and in the output.

import torch


def apply_repetition_penalties_cuda(logits, prompt_mask, output_mask, repetition_penalties):
    penalty = repetition_penalties.double()[:, None]
    for mask in (prompt_mask, output_mask):
        scores = logits.double()
        logits.copy_(torch.where(mask, torch.where(scores > 0, scores / penalty, scores * penalty), scores))
