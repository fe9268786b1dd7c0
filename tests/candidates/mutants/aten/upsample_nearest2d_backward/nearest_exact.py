# outcome: wrong value
# breaks: It takes the pixel under the middle of an output pixel, as nearest-exact does.

import torch


def _exact(grad_output, output_size, input_size, scales_h, scales_w):
    return torch.ops.aten._upsample_nearest_exact2d_backward(grad_output, output_size, input_size, scales_h, scales_w)


def upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h=None, scales_w=None):
    return _exact(grad_output, output_size, input_size, scales_h, scales_w)


def upsample_nearest2d_backward_grad_input(
    grad_output, output_size, input_size, scales_h=None, scales_w=None, *, grad_input
):
    return grad_input.copy_(_exact(grad_output, output_size, input_size, scales_h, scales_w))
