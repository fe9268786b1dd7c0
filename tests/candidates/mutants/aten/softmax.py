import torch


# breaks: It normalises along the last dimension whatever dim says.
def always_last_dim(self, dim, dtype=None):
    dim = -1
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(dtype or self.dtype).contiguous()


# breaks: It adds up in bfloat16.
def bfloat16_sum(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.bfloat16().sum(dim, keepdim=True)).to(dtype or self.dtype).contiguous()


# breaks: It computes in float16, also for float32.
def half_precision(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp((x - x.amax(dim, keepdim=True)).half()) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(dtype or self.dtype).contiguous()


# breaks: It ignores the argument dtype.
# outcome: wrong dtype
def ignores_dtype(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(self.dtype).contiguous()


# breaks: It leaves the last element of a slice out of the sum.
def last_element_not_summed(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    shorter = max(1, e.shape[dim] - 1) if e.ndim else 1
    return (
        (e / (e.narrow(dim, 0, shorter) if e.numel() and e.ndim else e).sum(dim, keepdim=True))
        .to(dtype or self.dtype)
        .contiguous()
    )


# breaks: It gives zeros, not NaN, for a slice with nothing but -inf.
def masked_rows_zero(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).nan_to_num(0.0).to(dtype or self.dtype).contiguous()


# breaks: It does not subtract the maximum, so that exp overflows in float32.
def no_maximum(self, dim, dtype=None):
    x = self.to(torch.float32)
    e = torch.exp(x) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(dtype or self.dtype).contiguous()


# breaks: It subtracts the maximum in its input.
# outcome: input changed
def subtracts_in_place(self, dim, dtype=None):
    if self.numel():
        self.sub_(1.0)
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(dtype or self.dtype).contiguous()
