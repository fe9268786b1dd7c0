# outcome: wrong value
# breaks: It takes the mean of the output pixels, not their sum.

import torch


def _mean(grad_output, output_size, input_size, scales_h, scales_w):
    total = torch.ops.aten.upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h, scales_w)
    ones = torch.ones_like(grad_output)
    count = torch.ops.aten.upsample_nearest2d_backward(ones, output_size, input_size, scales_h, scales_w)
    return total / count.clamp(min=1)


def upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h=None, scales_w=None):
    return _mean(grad_output, output_size, input_size, scales_h, scales_w)


def upsample_nearest2d_backward_grad_input(
    grad_output, output_size, input_size, scales_h=None, scales_w=None, *, grad_input
):
    return grad_input.copy_(_mean(grad_output, output_size, input_size, scales_h, scales_w))
