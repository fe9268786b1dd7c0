import torch


# breaks: Takes denormal numbers for 0, as a compiler does that is told to be fast.
def denormals_are_zero(self, dim=None, keepdim=False):
    if self.dtype == torch.float32:
        self = torch.where(self.abs() < torch.finfo(torch.float32).smallest_normal, 0, self)
    return torch.argmax(self, dim, keepdim)


# breaks: Finds the largest of whole numbers as float32.
def integers_in_float(self, dim=None, keepdim=False):
    return torch.argmax(self.float() if self.dtype in (torch.int32, torch.int64) else self, dim, keepdim)
