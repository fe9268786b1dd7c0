import torch


# breaks: It finds the scales from the sizes also where they are given.
def ignores_scales(grad_output, output_size, input_size, scales_h=None, scales_w=None):
    return torch.ops.aten.upsample_nearest2d_backward(grad_output, output_size, input_size)


def ignores_scales__grad_input(grad_output, output_size, input_size, scales_h=None, scales_w=None, *, grad_input):
    return grad_input.copy_(torch.ops.aten.upsample_nearest2d_backward(grad_output, output_size, input_size))


def _mean(grad_output, output_size, input_size, scales_h, scales_w):
    total = torch.ops.aten.upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h, scales_w)
    ones = torch.ones_like(grad_output)
    count = torch.ops.aten.upsample_nearest2d_backward(ones, output_size, input_size, scales_h, scales_w)
    return total / count.clamp(min=1)


# breaks: It takes the mean of the output pixels, not their sum.
def mean(grad_output, output_size, input_size, scales_h=None, scales_w=None):
    return _mean(grad_output, output_size, input_size, scales_h, scales_w)


def mean__grad_input(grad_output, output_size, input_size, scales_h=None, scales_w=None, *, grad_input):
    return grad_input.copy_(_mean(grad_output, output_size, input_size, scales_h, scales_w))


def _exact(grad_output, output_size, input_size, scales_h, scales_w):
    return torch.ops.aten._upsample_nearest_exact2d_backward(grad_output, output_size, input_size, scales_h, scales_w)


# breaks: It takes the pixel under the middle of an output pixel, as nearest-exact does.
def nearest_exact(grad_output, output_size, input_size, scales_h=None, scales_w=None):
    return _exact(grad_output, output_size, input_size, scales_h, scales_w)


def nearest_exact__grad_input(grad_output, output_size, input_size, scales_h=None, scales_w=None, *, grad_input):
    return grad_input.copy_(_exact(grad_output, output_size, input_size, scales_h, scales_w))
