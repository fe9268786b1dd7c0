import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rows(x, w, b, y, n: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, block)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0) * tl.load(w + at, mask=at < n, other=0.0)
    tl.store(y + row, tl.sum(v, axis=0))


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.zeros(1))
        self.n = features

    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        rows[(x.shape[0],)](x, self.weight, self.bias, y, self.n, triton.next_power_of_2(self.n))
        return y
