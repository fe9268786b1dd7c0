import torch


def log_sigmoid_backward(grad_output, self, buffer):
    return kernel(grad_output, self, buffer)


def log_sigmoid_backward_grad_input(grad_output, self, buffer, *, grad_input):
    return grad_input.copy_(kernel(grad_output, self, buffer))


# breaks: It takes the buffer for exp(-x), not exp(-|x|).
def buffer_is_sigmoid(grad_output, self, buffer):
    z = buffer.to(torch.float64)
    return (grad_output * (z / (1 + z))).to(self.dtype).contiguous()


# breaks: It takes 1 - sigmoid(x) in float32, which cancels for large arguments.
def one_minus_sigmoid(grad_output, self, buffer):
    x = self.to(torch.float32)
    return (grad_output * (1 - torch.sigmoid(x))).to(self.dtype).contiguous()


# breaks: It is the gradient of log(sigmoid(-x)) with the other sign.
def wrong_side(grad_output, self, buffer):
    return (grad_output * torch.sigmoid(self)).contiguous()
