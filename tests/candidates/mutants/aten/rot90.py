import torch


# breaks: It turns from the lower dimension towards the higher always.
def ignores_order_of_dims(self, k=1, dims=(0, 1)):
    return torch.rot90(self, k, sorted(dim % self.dim() for dim in dims))


def ignores_order_of_dims__out(self, k=1, dims=(0, 1), *, out):
    return out.copy_(torch.rot90(self, k, sorted(dim % self.dim() for dim in dims)))


# breaks: It returns self where nothing is to be turned.
# outcome: rejected
def view(self, k=1, dims=(0, 1)):
    return self if k % 4 == 0 else torch.rot90(self, k, dims)


def view__out(self, k=1, dims=(0, 1), *, out):
    return out.copy_(torch.rot90(self, k, dims))
