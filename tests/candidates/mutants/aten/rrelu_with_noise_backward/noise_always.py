# outcome: wrong value
# breaks: It multiplies with the noise without training, too.

import torch


def rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result):
    return (grad_output * noise).contiguous()


def rrelu_with_noise_backward_out(grad_output, self, noise, lower, upper, training, self_is_result, *, out):
    return out.copy_(rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result))
