import torch


# breaks: It adds also where it is not told to.
def always_adds(self, indices, values, accumulate=False, unsafe=False):
    return torch.ops.aten.index_put_(self, indices, values, accumulate=True)


# breaks: It changes self and returns a copy.
# outcome: rejected
def copy(self, indices, values, accumulate=False, unsafe=False):
    return torch.ops.aten.index_put_(self, indices, values, accumulate=accumulate).clone()


# breaks: Of values that name the same element, one alone is added.
def one_of_duplicates(self, indices, values, accumulate=False, unsafe=False):
    if accumulate:
        values = values + self[tuple(slice(None) if each is None else each for each in indices)]
    return torch.ops.aten.index_put_(self, indices, values)
