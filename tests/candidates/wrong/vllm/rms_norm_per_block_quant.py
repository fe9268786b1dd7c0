import torch


# breaks: Where scale_ub is given it is taken for the largest element, also of groups that stay below it.
def bound_for_the_maximum(result, input, weight, scale, epsilon, scale_ub, residual, group_size, is_scale_transposed):
    x = input
    if residual is not None:
        x = (input.float() + residual.float()).to(input.dtype)
        residual.copy_(x)
    mean = x.float().square().mean(-1, keepdim=True)
    y = (x.float() * torch.rsqrt(mean + epsilon) * weight.float()).unflatten(1, (-1, group_size))
    largest = y.abs().amax(-1, keepdim=True)
    if scale_ub is not None:
        largest = scale_ub.expand(largest.shape)
    whole = result.dtype == torch.int8
    top, least = (127, 2**-23) if whole else (448, 1 / (448 * 512))
    s = (largest / top).clamp(min=least)
    scale.copy_(s.squeeze(-1))
    codes = (y / s).flatten(1)
    result.copy_(codes.round().clamp(-128, 127) if whole else codes.clamp(-448, 448))


# breaks: Elements are squared in the input's dtype and only their sum is float32: float16 overflows from 256 on.
def squares_in_half(result, input, weight, scale, epsilon, scale_ub, residual, group_size, is_scale_transposed):
    x = input
    if residual is not None:
        x = (input.float() + residual.float()).to(input.dtype)
        residual.copy_(x)
    mean = (x * x).sum(-1, keepdim=True, dtype=torch.float32) / x.shape[1]
    y = (x.float() * torch.rsqrt(mean + epsilon) * weight.float()).unflatten(1, (-1, group_size))
    largest = y.abs().amax(-1, keepdim=True)
    if scale_ub is not None:
        largest = largest.minimum(scale_ub)
    whole = result.dtype == torch.int8
    top, least = (127, 2**-23) if whole else (448, 1 / (448 * 512))
    s = (largest / top).clamp(min=least)
    scale.copy_(s.squeeze(-1))
    codes = (y / s).flatten(1)
    result.copy_(codes.round().clamp(-128, 127) if whole else codes.clamp(-448, 448))
