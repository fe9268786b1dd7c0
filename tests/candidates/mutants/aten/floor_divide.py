import torch


# breaks: Divides whole numbers as float64 and rounds down, which is exact below 2**53 alone.
def quotients_in_double(self, other):
    dtype = torch.result_type(self, other)
    if dtype.is_floating_point:
        return torch.floor_divide(self, other)
    return torch.floor(self.double() / other).to(dtype)
