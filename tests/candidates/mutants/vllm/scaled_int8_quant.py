import torch


def clamped(codes):
    return codes.clamp(-128, 127)


# breaks: It rounds halfway cases away from zero.
def rounds_half_away__static(result, input, scale, azp):
    codes = half_away(input.double() / scale.double())
    result.copy_(clamped(codes if azp is None else codes + azp))


def rounds_half_away__dynamic(result, input, scale, azp):
    x = input.double()
    if azp is None:
        scale.copy_(x.abs().amax(-1, keepdim=True) / 127)
        codes = torch.where(scale == 0, 0.0, x / scale.double())
    else:
        low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
        scale.copy_((high - low) / 255)
        azp.copy_(torch.round(-128 - low / (high - low) * 255))
        codes = x / ((high - low) / 255)
    codes = half_away(codes)
    result.copy_(clamped(codes if azp is None else codes + azp))


def half_away(x):
    return x.sign() * torch.floor(x.abs() + 0.5)


# breaks: It takes 128 for the largest code.
def scale_over_128__static(result, input, scale, azp):
    codes = torch.round(input.double() / scale.double())
    result.copy_(clamped(codes if azp is None else codes + azp))


def scale_over_128__dynamic(result, input, scale, azp):
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


# breaks: It lets codes beyond 127 wrap round.
def wraps_round__static(result, input, scale, azp):
    codes = torch.round(input.double() / scale.double())
    result.copy_(wrapped(codes if azp is None else codes + azp))


def wraps_round__dynamic(result, input, scale, azp):
    x = input.double()
    if azp is None:
        scale.copy_(x.abs().amax(-1, keepdim=True) / 127)
        codes = torch.where(scale == 0, 0.0, x / scale.double())
    else:
        low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
        scale.copy_((high - low) / 255)
        azp.copy_(torch.round(-128 - low / (high - low) * 255))
        codes = x / ((high - low) / 255)
    codes = torch.round(codes)
    result.copy_(wrapped(codes if azp is None else codes + azp))


def wrapped(codes):
    return (codes.long() + 128) % 256 - 128


# breaks: It subtracts the zero point.
def zero_point_subtracted__static(result, input, scale, azp):
    codes = torch.round(input.double() / scale.double())
    result.copy_(clamped(codes if azp is None else codes - azp))


def zero_point_subtracted__dynamic(result, input, scale, azp):
    x = input.double()
    if azp is None:
        scale.copy_(x.abs().amax(-1, keepdim=True) / 127)
        codes = torch.where(scale == 0, 0.0, x / scale.double())
    else:
        low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
        scale.copy_((high - low) / 255)
        azp.copy_(torch.round(-128 - low / (high - low) * 255))
        codes = x / ((high - low) / 255)
    codes = torch.round(codes)
    result.copy_(clamped(codes if azp is None else codes - azp))


# breaks: It keeps quotients within ±10⁹ before the zero point is added.
def kept_small__static(result, input, scale, azp):
    codes = torch.round(input.double() / scale.double())
    result.copy_(clamped(codes if azp is None else codes.clamp(-1.0e9, 1.0e9) + azp))


def kept_small__dynamic(result, input, scale, azp):
    x = input.double()
    if azp is None:
        scale.copy_(x.abs().amax(-1, keepdim=True) / 127)
        result.copy_(clamped(torch.round(torch.where(scale == 0, 0.0, x / scale.double()))))
        return
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    scale.copy_((high - low) / 255)
    azp.copy_(torch.round(-128 - low / (high - low) * 255))
    result.copy_(clamped(torch.round(x / ((high - low) / 255)) + azp))
