# outcome: wrong value
# breaks: It leaves what out held where the gradient is zero.


import torch


def select_backward(grad_output, input_sizes, dim, index):
    return torch.ops.aten.select_backward(grad_output, input_sizes, dim, index)


def select_backward_out(grad_output, input_sizes, dim, index, *, out):
    out.select(dim, index).copy_(grad_output)
    return out
