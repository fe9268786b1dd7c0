# outcome: wrong value
# breaks: Without training it takes the lower slope.

import torch


def rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result):
    if training:
        return (grad_output * noise).contiguous()
    return torch.where(self > 0, grad_output, grad_output * lower).contiguous()


def rrelu_with_noise_backward_out(grad_output, self, noise, lower, upper, training, self_is_result, *, out):
    return out.copy_(rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result))
