import torch


def softplus_backward(grad_output, self, beta, threshold):
    return kernel(grad_output, self, beta, threshold)


def softplus_backward_grad_input(grad_output, self, beta, threshold, *, grad_input):
    return grad_input.copy_(kernel(grad_output, self, beta, threshold))


# breaks: It divides by beta, as the forward pass does.
def divides_by_beta(grad_output, self, beta, threshold):
    x = self.to(torch.float64)
    value = torch.where(x * beta > threshold, grad_output, grad_output * torch.sigmoid(x * beta) / beta)
    return value.to(self.dtype).contiguous()


# breaks: It takes beta for 1.
def ignores_beta(grad_output, self, beta, threshold):
    x = self.to(torch.float64)
    value = torch.where(x * beta > threshold, grad_output, grad_output * torch.sigmoid(x))
    return value.to(self.dtype).contiguous()


# breaks: It has no threshold.
def ignores_threshold(grad_output, self, beta, threshold):
    x = self.to(torch.float64)
    return (grad_output * torch.sigmoid(x * beta)).to(self.dtype).contiguous()


# breaks: It compares self, not beta self, with the threshold.
def threshold_on_self(grad_output, self, beta, threshold):
    x = self.to(torch.float64)
    value = torch.where(x > threshold, grad_output, grad_output * torch.sigmoid(x * beta))
    return value.to(self.dtype).contiguous()
