import torch


# breaks: It divides negative logits, too, which makes them likelier.
def divides_always(logits, prompt_mask, output_mask, repetition_penalties):
    penalised = logits.double() / repetition_penalties.double()[:, None]
    logits.copy_(torch.where(prompt_mask | output_mask, penalised, logits.double()))


# breaks: It penalises the tokens of the output alone.
def ignores_prompt(logits, prompt_mask, output_mask, repetition_penalties):
    penalty = repetition_penalties.double()[:, None]
    scores = logits.double()
    penalised = torch.where(scores > 0, scores / penalty, scores * penalty)
    logits.copy_(torch.where(output_mask, penalised, scores))


# breaks: It penalises a token twice that stands in the prompt and in the output.
def once_per_mask(logits, prompt_mask, output_mask, repetition_penalties):
    penalty = repetition_penalties.double()[:, None]
    for mask in (prompt_mask, output_mask):
        scores = logits.double()
        logits.copy_(torch.where(mask, torch.where(scores > 0, scores / penalty, scores * penalty), scores))
