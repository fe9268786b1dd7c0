# outcome: wrong value
# breaks: It is the gradient of log(sigmoid(-x)) with the other sign.

import torch


def log_sigmoid_backward(grad_output, self, buffer):
    return (grad_output * torch.sigmoid(self)).contiguous()


def log_sigmoid_backward_grad_input(grad_output, self, buffer, *, grad_input):
    return grad_input.copy_(log_sigmoid_backward(grad_output, self, buffer))
