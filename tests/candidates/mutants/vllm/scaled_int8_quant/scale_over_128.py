# outcome: wrong value
# breaks: It takes 128 for the largest code.

import torch


def scaled_int8_quant_static(result, input, scale, azp):
    codes = torch.round(input.double() / scale.double())
    result.copy_(clamped(codes if azp is None else codes + azp))


def scaled_int8_quant_dynamic(result, input, scale, azp):
    x = input.double()
    if azp is None:
        scale.copy_(x.abs().amax(-1, keepdim=True) / 128)
        codes = torch.where(scale == 0, 0.0, x / scale.double())
    else:
        low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
        scale.copy_((high - low) / 255)
        azp.copy_(torch.round(-128 - low / (high - low) * 255))
        codes = x / ((high - low) / 255)
    codes = torch.round(codes)
    result.copy_(clamped(codes if azp is None else codes + azp))


def clamped(codes):
    return codes.clamp(-128, 127)
