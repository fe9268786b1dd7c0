# outcome: wrong value
# breaks: It is the gradient in the target.

import torch


def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    x = self.to(torch.float64) - target
    slope = -(x / beta).clamp(-1, 1) if beta else -torch.sign(x)
    count = self.numel() if reduction == 1 else 1
    return (grad_output * slope / max(count, 1)).to(self.dtype).contiguous()


def smooth_l1_loss_backward_grad_input(grad_output, self, target, reduction, beta, *, grad_input):
    return grad_input.copy_(smooth_l1_loss_backward(grad_output, self, target, reduction, beta))
