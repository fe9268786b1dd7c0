# outcome: wrong value
# breaks: Raises whole numbers as float64, which is exact below 2**53 alone.

import torch


def pow(self, exponent):
    dtype = torch.result_type(self, exponent)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.pow(self, exponent)
    base = self.double() if isinstance(self, torch.Tensor) else float(self)
    return torch.pow(base, exponent).to(dtype)


pow_Tensor_Tensor = pow_Tensor_Scalar = pow_Scalar = pow


def pow_Tensor_Tensor_out(self, exponent, *, out):
    return out.copy_(pow(self, exponent))
