"""A batch size that works only where it equals the number of columns, or is 1: half of it cannot be called."""

import torch

batch_size = 2560


class Model(torch.nn.Module):
    """Mean distance of each element from a mark, one mark a column."""

    def forward(self, x, marks):
        return torch.mean(torch.abs(1 - x * marks))


def get_inputs():
    return [torch.rand(batch_size, 2560), torch.rand(batch_size)]


def get_init_inputs():
    return []
