# outcome: wrong value
# breaks: It takes log(1 + exp(x)) in float32, which is 0 for negative arguments.

import torch


def mish_backward(grad_output, self):
    x = self.to(torch.float32)
    t = torch.tanh(torch.where(x > 20, x, torch.log(1 + torch.exp(x)))).to(torch.float64)
    x = self.to(torch.float64)
    return (grad_output * (t + x * torch.sigmoid(x) * (1 - t * t))).to(self.dtype).contiguous()
