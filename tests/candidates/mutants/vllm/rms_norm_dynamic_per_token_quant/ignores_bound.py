# outcome: wrong value
# breaks: It ignores the upper bound of the scale.

import torch


def rms_norm_dynamic_per_token_quant(result, input, weight, scale, epsilon, scale_ub, residual):
    x = input.double()
    if residual is not None:
        x = x + residual.double()
        residual.copy_(x)
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double()
    y = y.unflatten(-1, (-1, input.shape[-1]))
    largest = y.abs().amax(-1)
    if False:
        largest = torch.minimum(largest, scale_ub.double())
    exact = result.dtype == torch.int8
    s = (largest / (127 if exact else 448)).clamp(min=2**-23 if exact else 1 / (448 * 512)).double()
    scale.copy_(s)
    codes = (y / s.unsqueeze(-1)).flatten(-2)
    result.copy_(torch.round(codes).clamp(-128, 127) if exact else codes.clamp(-448, 448).float())
