# outcome: wrong value
# breaks: It divides rows of zeros by a scale of zero.

import torch


def scaled_fp8_quant_static(result, input, scale):
    rows, columns = (input.shape[0] // scale.shape[0], input.shape[1] // scale.shape[-1])
    s = scale if scale.dim() == 1 else scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    result.copy_((input.float() / s).clamp(-448, 448))


def scaled_fp8_quant_dynamic(result, input, scale):
    scale.copy_(input.abs().amax().float() / 448)
    result.copy_((input.float() / scale).clamp(-448, 448))


def scaled_fp8_quant_per_token(result, input, scale, scale_ub):
    largest = input.abs().amax(-1, keepdim=True).float()
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub)
    scale.copy_(largest / 448)
    result.copy_(torch.where(scale == 0, 0, input.float() / scale).clamp(-448, 448))
