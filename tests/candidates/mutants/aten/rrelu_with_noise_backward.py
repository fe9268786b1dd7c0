import torch


def rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result):
    return kernel(grad_output, self, noise, lower, upper, training, self_is_result)


def rrelu_with_noise_backward_out(grad_output, self, noise, lower, upper, training, self_is_result, *, out):
    return out.copy_(kernel(grad_output, self, noise, lower, upper, training, self_is_result))


# breaks: Without training it takes the lower slope.
def lower_slope(grad_output, self, noise, lower, upper, training, self_is_result):
    if training:
        return (grad_output * noise).contiguous()
    return torch.where(self > 0, grad_output, grad_output * lower).contiguous()


# breaks: It multiplies with the noise without training, too.
def noise_always(grad_output, self, noise, lower, upper, training, self_is_result):
    return (grad_output * noise).contiguous()


# breaks: In training it takes the noise below zero alone.
def noise_below_zero_only(grad_output, self, noise, lower, upper, training, self_is_result):
    slope = noise if training else (lower + upper) / 2
    return torch.where(self > 0, grad_output, grad_output * slope).contiguous()


# breaks: It takes the mean slope in training, too.
def noise_never(grad_output, self, noise, lower, upper, training, self_is_result):
    return torch.where(self > 0, grad_output, grad_output * ((lower + upper) / 2)).contiguous()
