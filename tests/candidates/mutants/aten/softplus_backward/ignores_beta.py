# outcome: wrong value
# breaks: It takes beta for 1.

import torch


def softplus_backward(grad_output, self, beta, threshold):
    x = self.to(torch.float64)
    value = torch.where(x * beta > threshold, grad_output, grad_output * torch.sigmoid(x))
    return value.to(self.dtype).contiguous()


def softplus_backward_grad_input(grad_output, self, beta, threshold, *, grad_input):
    return grad_input.copy_(softplus_backward(grad_output, self, beta, threshold))
