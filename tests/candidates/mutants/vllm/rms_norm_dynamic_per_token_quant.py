import torch


# breaks: It adds the residual, but normalises the input alone.
def forgets_residual(result, input, weight, scale, epsilon, scale_ub, residual):
    x = input.double()
    if residual is not None:
        residual.copy_(x + residual.double())
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double()
    y = y.unflatten(-1, (-1, input.shape[-1]))
    largest = y.abs().amax(-1)
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub.double())
    exact = result.dtype == torch.int8
    s = (largest / (127 if exact else 448)).clamp(min=2**-23 if exact else 1 / (448 * 512)).double()
    scale.copy_(s)
    codes = (y / s.unsqueeze(-1)).flatten(-2)
    result.copy_(torch.round(codes).clamp(-128, 127) if exact else codes.clamp(-448, 448).float())


# breaks: It ignores the upper bound of the scale.
def ignores_bound(result, input, weight, scale, epsilon, scale_ub, residual):
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


# breaks: It stores what it multiplies by.
def inverse_scale(result, input, weight, scale, epsilon, scale_ub, residual):
    x = input.double()
    if residual is not None:
        x = x + residual.double()
        residual.copy_(x)
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double()
    y = y.unflatten(-1, (-1, input.shape[-1]))
    largest = y.abs().amax(-1)
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub.double())
    exact = result.dtype == torch.int8
    s = (largest / (127 if exact else 448)).clamp(min=2**-23 if exact else 1 / (448 * 512)).double()
    scale.copy_(1 / s)
    codes = (y / s.unsqueeze(-1)).flatten(-2)
    result.copy_(torch.round(codes).clamp(-128, 127) if exact else codes.clamp(-448, 448).float())


# breaks: It leaves the residual as it was.
def residual_not_stored(result, input, weight, scale, epsilon, scale_ub, residual):
    x = input.double()
    if residual is not None:
        x = x + residual.double()
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double()
    y = y.unflatten(-1, (-1, input.shape[-1]))
    largest = y.abs().amax(-1)
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub.double())
    exact = result.dtype == torch.int8
    s = (largest / (127 if exact else 448)).clamp(min=2**-23 if exact else 1 / (448 * 512)).double()
    scale.copy_(s)
    codes = (y / s.unsqueeze(-1)).flatten(-2)
    result.copy_(torch.round(codes).clamp(-128, 127) if exact else codes.clamp(-448, 448).float())
