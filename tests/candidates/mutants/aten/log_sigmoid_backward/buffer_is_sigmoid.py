# outcome: wrong value
# breaks: It takes the buffer for exp(-x), not exp(-|x|).

import torch


def log_sigmoid_backward(grad_output, self, buffer):
    z = buffer.to(torch.float64)
    return (grad_output * (z / (1 + z))).to(self.dtype).contiguous()


def log_sigmoid_backward_grad_input(grad_output, self, buffer, *, grad_input):
    return grad_input.copy_(log_sigmoid_backward(grad_output, self, buffer))
