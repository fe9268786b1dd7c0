# outcome: wrong value
# breaks: It takes the mean slope in training, too.

import torch


def rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result):
    return torch.where(self > 0, grad_output, grad_output * ((lower + upper) / 2)).contiguous()


def rrelu_with_noise_backward_out(grad_output, self, noise, lower, upper, training, self_is_result, *, out):
    return out.copy_(rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result))
