import torch


# breaks: Raises whole numbers as float64, which is exact below 2**53 alone.
def integers_in_double(self, exponent, *, out=None):
    dtype = torch.result_type(self, exponent)
    if dtype.is_floating_point or dtype.is_complex:
        result = torch.pow(self, exponent)
    else:
        base = self.double() if isinstance(self, torch.Tensor) else float(self)
        result = torch.pow(base, exponent).to(dtype)
    return result if out is None else out.copy_(result)
