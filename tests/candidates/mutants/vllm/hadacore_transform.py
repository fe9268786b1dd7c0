import torch


# breaks: It returns a new tensor and leaves x as it was.
# outcome: rejected
def new_tensor(x, inplace=True):
    y = x.double()
    size, half = x.shape[-1], 1
    while half < size:
        a, b = y.reshape(*x.shape[:-1], -1, 2, half).unbind(-2)
        y = torch.stack((a + b, a - b), -2)
        half *= 2
    y = y.reshape(x.shape) / size**0.5
    return y.to(x.dtype)


# breaks: It leaves the factor 1 / sqrt(n) out.
def not_scaled(x, inplace=True):
    y = x.double()
    size, half = x.shape[-1], 1
    while half < size:
        a, b = y.reshape(*x.shape[:-1], -1, 2, half).unbind(-2)
        y = torch.stack((a + b, a - b), -2)
        half *= 2
    y = y.reshape(x.shape) / 1
    return x.copy_(y)


# breaks: It puts sums and differences side by side, which gives another order of rows.
def other_order(x, inplace=True):
    y = x.double()
    size, half = x.shape[-1], 1
    while half < size:
        a, b = y.reshape(*x.shape[:-1], -1, 2, half).unbind(-2)
        y = torch.stack((a + b, a - b), -1)
        half *= 2
    y = y.reshape(x.shape) / size**0.5
    return x.copy_(y)


# breaks: It subtracts the other way round.
def signs_swapped(x, inplace=True):
    y = x.double()
    size, half = x.shape[-1], 1
    while half < size:
        a, b = y.reshape(*x.shape[:-1], -1, 2, half).unbind(-2)
        y = torch.stack((a + b, b - a), -2)
        half *= 2
    y = y.reshape(x.shape) / size**0.5
    return x.copy_(y)
