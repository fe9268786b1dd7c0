import torch


def masked_fill__Scalar(self, mask, value):
    return kernel(self, mask, torch.tensor(value))


def masked_fill__Tensor(self, mask, value):
    return kernel(self, mask, value)


# breaks: It computes self (1 - mask) + value mask, so that NaN stays NaN.
def by_arithmetic(self, mask, value):
    value = value.to(device=self.device)
    if self.dtype == torch.bool or self.is_complex():
        self.copy_(torch.where(mask, value, self))
    else:
        self.copy_(self * (~mask).to(self.dtype) + value.to(self.dtype) * mask.to(self.dtype))
    return self


# breaks: It converts the number to float32 first.
def by_float32(self, mask, value):
    value = value.to(device=self.device)
    self.copy_(torch.where(mask, value if value.is_complex() else value.to(torch.float32).to(self.dtype), self))
    return self


# breaks: It fills where the mask is False.
def inverted_mask(self, mask, value):
    value = value.to(device=self.device)
    self.copy_(torch.where(mask, self, value.to(self.dtype)))
    return self


# breaks: It reads the mask element by element, from the beginning where it ends.
def mask_not_broadcast(self, mask, value):
    value = value.to(device=self.device)
    flat = mask.reshape(-1)
    full = flat.repeat(-(-self.numel() // flat.numel()))[: self.numel()] if flat.numel() else flat
    self.copy_(torch.where(full.reshape(self.shape), value.to(self.dtype), self))
    return self
