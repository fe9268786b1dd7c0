# outcome: wrong value
# breaks: It leaves the derivative of the hyperbolic tangent out.

import torch


def mish_backward(grad_output, self):
    return (grad_output * torch.tanh(torch.nn.functional.softplus(self))).contiguous()
