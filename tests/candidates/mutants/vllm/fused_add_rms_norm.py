import torch


# breaks: It normalises the input alone, and adds it to the residual all the same.
def forgets_residual(input, residual, weight, epsilon):
    x = input.double()
    residual.copy_(x + residual.double())
    input.copy_(x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double())


# breaks: It squares and sums in float16.
def half_precision(input, residual, weight, epsilon):
    x = input.double() + residual.double()
    residual.copy_(x)
    mean = (x.half() * x.half()).mean(-1, keepdim=True)
    input.copy_(x / torch.sqrt(mean + epsilon) * weight.double())


# breaks: It leaves the residual as it was.
def residual_not_stored(input, residual, weight, epsilon):
    x = input.double() + residual.double()
    input.copy_(x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double())
