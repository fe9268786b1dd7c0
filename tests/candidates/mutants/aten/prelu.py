import torch


# breaks: It leaves what is not positive at zero.
def forgets_zero(self, weight):
    x = self
    return torch.relu(x).contiguous()


# breaks: It is max(x, 0) + weight min(x, 0) with limits that take NaN for 0.
def nan_to_zero(self, weight):
    x = self
    w = weight.reshape([-1] + [1] * (self.dim() - 2)) if weight.numel() > 1 else weight.reshape([])
    return torch.where(x > 0, x, torch.where(x <= 0, w * x, torch.zeros_like(x))).contiguous()


# breaks: It takes the first weight for all channels.
def one_weight(self, weight):
    x = self
    return torch.where(x > 0, x, weight.reshape(-1)[:1].reshape([]) * x).contiguous()


# breaks: It takes a weight per index of the last dimension where the number fits.
def weight_of_last_dimension(self, weight):
    x = self
    if weight.numel() == 1:
        weight = weight.reshape([])
    elif self.shape[-1] != weight.numel():
        weight = weight.reshape([-1] + [1] * (self.dim() - 2))
    return torch.where(x > 0, x, weight * x).contiguous()
