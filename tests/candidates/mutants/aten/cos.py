import torch


def cos(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: It reduces large arguments by a period rounded to float32.
def coarse_reduction(x):
    if x.is_complex():
        return torch.cos(x)
    period = torch.tensor(2 * torch.pi, dtype=torch.float32, device=x.device).to(torch.float64)
    return torch.cos(x - period * torch.round(x / period))


# breaks: Of complex numbers it takes the cosine of the parts.
def parts_of_complex(x):
    if x.is_complex():
        return torch.complex(torch.cos(x.real), torch.cos(x.imag))
    return torch.cos(x)
