# outcome: wrong value
# breaks: It adds to what grad_input held.

import torch


def reflection_pad1d_backward(grad_output, self, padding):
    return torch.ops.aten.reflection_pad1d_backward(grad_output, self, padding)


def reflection_pad1d_backward_grad_input(grad_output, self, padding, *, grad_input):
    return grad_input.add_(torch.ops.aten.reflection_pad1d_backward(grad_output, self, padding))
