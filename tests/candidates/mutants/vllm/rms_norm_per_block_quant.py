import torch


# breaks: It ignores the upper bound of the scale.
def ignores_bound(result, input, weight, scale, epsilon, scale_ub, residual, group_size, is_scale_transposed):
    x = input.double()
    if residual is not None:
        x = x + residual.double()
        residual.copy_(x)
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double()
    y = y.unflatten(-1, (-1, group_size))
    largest = y.abs().amax(-1)
    if False:
        largest = torch.minimum(largest, scale_ub.double())
    exact = result.dtype == torch.int8
    s = (largest / (127 if exact else 448)).clamp(min=2**-23 if exact else 1 / (448 * 512)).double()
    scale.copy_(s)
    codes = (y / s.unsqueeze(-1)).flatten(-2)
    result.copy_(torch.round(codes).clamp(-128, 127) if exact else codes.clamp(-448, 448).float())


# breaks: It stores scales row by row where columns are asked.
def ignores_scale_layout(result, input, weight, scale, epsilon, scale_ub, residual, group_size, is_scale_transposed):
    x = input.double()
    if residual is not None:
        x = x + residual.double()
        residual.copy_(x)
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double()
    y = y.unflatten(-1, (-1, group_size))
    largest = y.abs().amax(-1)
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub.double())
    exact = result.dtype == torch.int8
    s = (largest / (127 if exact else 448)).clamp(min=2**-23 if exact else 1 / (448 * 512)).double()
    dense = s.shape[0] * s.shape[1] == 1 + sum((n - 1) * k for n, k in zip(s.shape, scale.stride(), strict=True))
    (scale.as_strided(s.shape, (s.shape[1], 1)) if dense else scale).copy_(s)
    codes = (y / s.unsqueeze(-1)).flatten(-2)
    result.copy_(torch.round(codes).clamp(-128, 127) if exact else codes.clamp(-448, 448).float())


# breaks: It leaves the residual as it was.
def residual_not_stored(result, input, weight, scale, epsilon, scale_ub, residual, group_size, is_scale_transposed):
    x = input.double()
    if residual is not None:
        x = x + residual.double()
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double()
    y = y.unflatten(-1, (-1, group_size))
    largest = y.abs().amax(-1)
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub.double())
    exact = result.dtype == torch.int8
    s = (largest / (127 if exact else 448)).clamp(min=2**-23 if exact else 1 / (448 * 512)).double()
    scale.copy_(s)
    codes = (y / s.unsqueeze(-1)).flatten(-2)
    result.copy_(torch.round(codes).clamp(-128, 127) if exact else codes.clamp(-448, 448).float())


# breaks: It gives all blocks of a row the scale of the largest.
def scale_per_row(result, input, weight, scale, epsilon, scale_ub, residual, group_size, is_scale_transposed):
    x = input.double()
    if residual is not None:
        x = x + residual.double()
        residual.copy_(x)
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double()
    y = y.unflatten(-1, (-1, group_size))
    largest = y.abs().amax(-1)
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub.double())
    exact = result.dtype == torch.int8
    s = (
        (largest / (127 if exact else 448))
        .clamp(min=2**-23 if exact else 1 / (448 * 512))
        .amax(-1, keepdim=True)
        .expand_as(largest)
    )
    scale.copy_(s)
    codes = (y / s.unsqueeze(-1)).flatten(-2)
    result.copy_(torch.round(codes).clamp(-128, 127) if exact else codes.clamp(-448, 448).float())
