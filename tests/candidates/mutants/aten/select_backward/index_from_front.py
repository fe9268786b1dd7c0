# outcome: wrong value
# breaks: It takes a negative index for the first.

import torch


def select_backward(grad_output, input_sizes, dim, index):
    return torch.ops.aten.select_backward(grad_output, input_sizes, dim, max(index, 0))


def select_backward_out(grad_output, input_sizes, dim, index, *, out):
    return out.copy_(select_backward(grad_output, input_sizes, dim, index))
