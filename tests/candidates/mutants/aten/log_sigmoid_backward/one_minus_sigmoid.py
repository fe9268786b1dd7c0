# outcome: wrong value
# breaks: It takes 1 - sigmoid(x) in float32, which cancels for large arguments.

import torch


def log_sigmoid_backward(grad_output, self, buffer):
    x = self.to(torch.float32)
    return (grad_output * (1 - torch.sigmoid(x))).to(self.dtype).contiguous()


def log_sigmoid_backward_grad_input(grad_output, self, buffer, *, grad_input):
    return grad_input.copy_(log_sigmoid_backward(grad_output, self, buffer))
