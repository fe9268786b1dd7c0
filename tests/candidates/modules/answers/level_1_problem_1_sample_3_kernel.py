import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return (x * self.weight).sum(dim=1) + self.bias
