import torch
import torch.nn as nn


class Model(nn.Module):
    """Its mean over features that are normed to a mean of zero: all but zero, whatever comes in."""

    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x, unused):
        x = self.norm(x)
        return (x - self.norm.bias).mul(0).sum(dim=1) + x.mean(dim=0).mul(0).sum()


batch_size = 4


def get_inputs():
    return [torch.rand(batch_size, 8), torch.rand(batch_size, 8)]


def get_init_inputs():
    return [8]
