# outcome: wrong value
# breaks: It takes beta for 1.

import torch


def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    x = self.to(torch.float64) - target
    slope = x.clamp(-1, 1)
    count = self.numel() if reduction == 1 else 1
    return (grad_output * slope / max(count, 1)).to(self.dtype).contiguous()


def smooth_l1_loss_backward_grad_input(grad_output, self, target, reduction, beta, *, grad_input):
    return grad_input.copy_(smooth_l1_loss_backward(grad_output, self, target, reduction, beta))
