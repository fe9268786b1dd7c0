# outcome: wrong value
# breaks: It divides by exp(x) in float32, and answers NaN where that overflows.

import torch


def mish_backward(grad_output, self):
    e = torch.exp(self.to(torch.float32)).to(torch.float64)
    x = self.to(torch.float64)
    t = torch.tanh(torch.log1p(e))
    return (grad_output * (t + x * (e / (1 + e)) * (1 - t * t))).to(self.dtype).contiguous()
