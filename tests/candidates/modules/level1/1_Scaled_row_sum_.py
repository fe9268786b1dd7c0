import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows times a weight, summed, plus a bias."""

    def __init__(self, features: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.weight).sum(dim=1) + self.bias


batch_size = 32
features = 48


def get_inputs():
    return [torch.rand(batch_size, features)]


def get_init_inputs():
    return [features]
