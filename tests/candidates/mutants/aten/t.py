import torch


# breaks: It is a view for a matrix and a copy for a tensor with fewer dimensions.
def copy_of_vectors(self):
    if self.ndim < 2:
        return self.clone()
    return torch.as_strided(self, self.shape[::-1], self.stride()[::-1])


# breaks: It copies a contiguous matrix and views every other.
def copy_when_contiguous(self):
    if self.ndim < 2:
        return self.view(self.shape)
    if self.is_contiguous():
        return self.clone().t()
    return torch.as_strided(self, self.shape[::-1], self.stride()[::-1])


# breaks: It answers a float64 copy.
# outcome: wrong dtype
def float64(self):
    if self.ndim < 2:
        return self.view(self.shape)
    return torch.as_strided(self, self.shape[::-1], self.stride()[::-1]).double()


# breaks: It is a view of the right shape and wrong strides over the elements in their old order.
# outcome: wrong shape
def reshaped(self):
    if self.ndim < 2:
        return self.view(self.shape)
    return torch.as_strided(self, self.shape[::-1], (self.shape[0], 1))
