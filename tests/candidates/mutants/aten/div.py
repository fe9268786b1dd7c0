import torch


def div_Tensor(self, other):
    dtype = torch.result_type(self, other)
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = torch.float32
    wide = torch.complex128 if dtype.is_complex else torch.float64
    return kernel(self.to(dtype).to(wide), other.to(dtype).to(wide)).to(dtype)


def div_Scalar(self, other):
    return torch.div(self, other)


def div_Tensor_mode(self, other, *, rounding_mode):
    return div_Tensor(self, other) if rounding_mode is None else torch.div(self, other, rounding_mode=rounding_mode)


def div_Scalar_mode(self, other, *, rounding_mode):
    return torch.div(self, other, rounding_mode=rounding_mode)


# breaks: Of complex numbers it squares the divisor's parts in float32, which overflow or vanish.
def divides_by_the_squared_modulus(a, b):
    if not a.is_complex():
        return a / b
    squared = (b.real.float() * b.real.float() + b.imag.float() * b.imag.float()).double()
    safe = torch.isfinite(b) & (b != 0) & (b.imag != 0)
    return torch.where(safe, a * b.conj() / squared, a / b)
