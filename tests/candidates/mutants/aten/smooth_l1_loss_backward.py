import torch


def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    return kernel(grad_output, self, target, reduction, beta)


def smooth_l1_loss_backward_grad_input(grad_output, self, target, reduction, beta, *, grad_input):
    return grad_input.copy_(kernel(grad_output, self, target, reduction, beta))


# breaks: It is the gradient of the Huber loss, which does not divide by beta.
def huber(grad_output, self, target, reduction, beta):
    x = self.to(torch.float64) - target
    slope = x.clamp(-beta, beta)
    count = self.numel() if reduction == 1 else 1
    return (grad_output * slope / max(count, 1)).to(self.dtype).contiguous()


# breaks: It takes beta for 1.
def ignores_beta(grad_output, self, target, reduction, beta):
    x = self.to(torch.float64) - target
    slope = x.clamp(-1, 1)
    count = self.numel() if reduction == 1 else 1
    return (grad_output * slope / max(count, 1)).to(self.dtype).contiguous()


# breaks: It does not divide by the number of elements for the mean.
def mean_as_sum(grad_output, self, target, reduction, beta):
    x = self.to(torch.float64) - target
    slope = (x / beta).clamp(-1, 1) if beta else torch.sign(x)
    count = 1
    return (grad_output * slope / max(count, 1)).to(self.dtype).contiguous()


# breaks: It is the gradient in the target.
def of_the_target(grad_output, self, target, reduction, beta):
    x = self.to(torch.float64) - target
    slope = -(x / beta).clamp(-1, 1) if beta else -torch.sign(x)
    count = self.numel() if reduction == 1 else 1
    return (grad_output * slope / max(count, 1)).to(self.dtype).contiguous()


# breaks: It divides by the number of elements for the sum, too.
def sum_as_mean(grad_output, self, target, reduction, beta):
    x = self.to(torch.float64) - target
    slope = (x / beta).clamp(-1, 1) if beta else torch.sign(x)
    count = self.numel() if reduction else 1
    return (grad_output * slope / max(count, 1)).to(self.dtype).contiguous()
