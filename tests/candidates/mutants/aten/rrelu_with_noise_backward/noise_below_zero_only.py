# outcome: wrong value
# breaks: In training it takes the noise below zero alone.

import torch


def rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result):
    slope = noise if training else (lower + upper) / 2
    return torch.where(self > 0, grad_output, grad_output * slope).contiguous()


def rrelu_with_noise_backward_out(grad_output, self, noise, lower, upper, training, self_is_result, *, out):
    return out.copy_(rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result))
