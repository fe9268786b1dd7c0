# outcome: wrong value
# breaks: It reads lse as (tokens, heads).

import torch


def merge_attn_states(
    output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, with_prefix, output_scale=None
):
    p, s = (torch.where(torch.isinf(x), float("-inf"), x) for x in (prefix_lse, suffix_lse))
    m = torch.maximum(p, s)
    a, b = torch.exp(p - m), torch.exp(s - m)
    left, right = ((x / (a + b)).reshape(len(output), -1)[:, :, None] for x in (a, b))
    out = left * prefix_output.float() + right * suffix_output.float()
    lse = m + torch.log(a + b)
    out = torch.where(torch.isinf(m).mT[:, :, None], prefix_output.float(), out)
    lse = torch.where(torch.isinf(m), float("-inf"), lse)
    late = torch.arange(len(output), device=output.device) >= (len(output) if with_prefix is None else with_prefix)
    out = torch.where(late[:, None, None], suffix_output.float(), out)
    lse = torch.where(late, suffix_lse, lse)
    if output_scale is not None:
        out = (out / output_scale).clamp(-448, 448)
    output.copy_(out)
    if output_lse is not None:
        output_lse.copy_(lse)
