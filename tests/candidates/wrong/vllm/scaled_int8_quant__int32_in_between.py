# outcome: wrong value
# breaks: Quotients become int32 before they are limited, which those beyond 2**31 do not survive.

import torch


def _codes(x):
    whole = torch.where(x.abs() < 2**31, x, -(2.0**31)).round().to(torch.int32)
    return whole.clamp(-128, 127).to(torch.int8)


def scaled_int8_quant_static(result, input, scale, azp):
    quotient = input.float() / scale
    result.copy_(_codes(quotient if azp is None else quotient.round() + azp))


def scaled_int8_quant_dynamic(result, input, scale, azp):
    x = input.float()
    low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    if azp is None:
        scale.copy_(torch.maximum(high, -low) / 127)
        result.copy_(_codes(x / torch.where(scale > 0, scale, 1.0)))
    else:
        scale.copy_((high - low) / 255)
        azp.copy_((-128 - low / scale).round())
        result.copy_(_codes((x / scale).round() + azp))
