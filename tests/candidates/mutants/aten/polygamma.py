import torch


def polygamma(n, self):
    dtype = self.dtype if self.is_floating_point() else torch.float32
    x = self.to(dtype).to(torch.float64)
    return kernel(n, x).to(dtype).contiguous()


def polygamma_out(n, self, *, out):
    return out.copy_(polygamma(n, self))


# breaks: It takes the asymptotic series without recurrence, wrong for small arguments.
def asymptotic(n, x):
    if n == 0:
        return torch.where(x > 0, torch.log(x) - 1 / (2 * x) - 1 / (12 * x * x), torch.digamma(x))
    if n == 1:
        return torch.where(x > 0, 1 / x + 1 / (2 * x * x) + 1 / (6 * x**3), torch.polygamma(1, x))
    return torch.polygamma(n, x)


# breaks: It leaves n! out.
def no_factorial(n, x):
    value = torch.polygamma(n, x)
    return value / torch.exp(torch.lgamma(torch.tensor(n + 1.0, dtype=torch.float64)))


# breaks: It answers NaN for every negative argument.
def no_reflection(n, x):
    return torch.where(x < 0, torch.nan, torch.polygamma(n, x))


# breaks: It leaves the sign (-1)^(n+1) out.
def no_sign(n, x):
    return torch.polygamma(n, x).abs() if n else torch.digamma(x)


# breaks: It takes every order above 2 for 2.
def three_orders(n, x):
    return torch.polygamma(min(n, 2), x)
