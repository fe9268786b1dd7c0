# outcome: wrong value
# breaks: It chooses by the order of the indices, not by the indices.

import torch


def index_select(self, dim, index):
    return torch.index_select(self, dim, index.reshape(-1).sort().values)
