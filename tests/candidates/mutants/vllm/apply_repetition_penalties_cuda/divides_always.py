# outcome: wrong value
# breaks: It divides negative logits, too, which makes them likelier.

import torch


def apply_repetition_penalties_cuda(logits, prompt_mask, output_mask, repetition_penalties):
    penalised = logits.double() / repetition_penalties.double()[:, None]
    logits.copy_(torch.where(prompt_mask | output_mask, penalised, logits.double()))
