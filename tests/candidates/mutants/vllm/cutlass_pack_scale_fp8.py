import torch


# breaks: It begins with one times the scale.
def ascending(scales):
    multiples = -torch.arange(1, 9, device=scales.device, dtype=torch.float32)
    return (scales.float().reshape(-1, 1) * multiples).clamp(-448, 448).reshape(-1).to(scales.dtype)


# breaks: It rounds towards zero.
def cuts_off(scales):
    multiples = torch.arange(-8, 0, device=scales.device, dtype=torch.float32)
    wide = (scales.float().reshape(-1, 1) * multiples).clamp(-448, 448).reshape(-1)
    step = torch.exp2(torch.floor(torch.log2(wide.abs().clamp(min=2.0**-6))) - 3)
    return ((wide / step).trunc() * step).to(scales.dtype)


# breaks: It makes NaN of what is too large.
def does_not_saturate(scales):
    multiples = torch.arange(-8, 0, device=scales.device, dtype=torch.float32)
    wide = (scales.float().reshape(-1, 1) * multiples).reshape(-1)
    return torch.where(wide.abs() > 448, torch.full_like(wide, float("nan")), wide).to(scales.dtype)
