import torch


def _compute_by_float(x):
    return -x.to(torch.float32).clamp(-9e18, 9e18) if x.dtype == torch.int64 else -x


# breaks: It negates integers by way of float32.
def by_float(self):
    return _compute_by_float(self).to(self.dtype).contiguous()


def _compute_conjugates(x):
    return torch.complex(x.real, -x.imag) if x.is_complex() else -x


# breaks: Of complex numbers it changes the imaginary part alone.
def conjugates(self):
    return _compute_conjugates(self).to(self.dtype).contiguous()
