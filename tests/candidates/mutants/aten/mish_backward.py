import torch


# breaks: It leaves the derivative of the hyperbolic tangent out.
def first_term_only(grad_output, self):
    return (grad_output * torch.tanh(torch.nn.functional.softplus(self))).contiguous()


# breaks: It divides by exp(x) in float32, and answers NaN where that overflows.
def nan_where_exp_overflows(grad_output, self):
    e = torch.exp(self.to(torch.float32)).to(torch.float64)
    x = self.to(torch.float64)
    t = torch.tanh(torch.log1p(e))
    return (grad_output * (t + x * (e / (1 + e)) * (1 - t * t))).to(self.dtype).contiguous()


# breaks: It takes log(1 + exp(x)) in float32, which is 0 for negative arguments.
def no_log1p(grad_output, self):
    x = self.to(torch.float32)
    t = torch.tanh(torch.where(x > 20, x, torch.log(1 + torch.exp(x)))).to(torch.float64)
    x = self.to(torch.float64)
    return (grad_output * (t + x * torch.sigmoid(x) * (1 - t * t))).to(self.dtype).contiguous()
