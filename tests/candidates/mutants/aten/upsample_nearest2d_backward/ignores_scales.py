# outcome: wrong value
# breaks: It finds the scales from the sizes also where they are given.

import torch


def upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h=None, scales_w=None):
    return torch.ops.aten.upsample_nearest2d_backward(grad_output, output_size, input_size)


def upsample_nearest2d_backward_grad_input(
    grad_output, output_size, input_size, scales_h=None, scales_w=None, *, grad_input
):
    return grad_input.copy_(torch.ops.aten.upsample_nearest2d_backward(grad_output, output_size, input_size))
