import torch


# breaks: It scales the first operand.
def alpha_on_self__Tensor(self, other, *, alpha=1):
    return torch.add(other, self, alpha=alpha).contiguous()


def alpha_on_self__Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()


# breaks: It turns NaN into 0.
def drops_nan__Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).nan_to_num(0.0).contiguous()


def drops_nan__Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).nan_to_num(0.0).contiguous()


# breaks: It answers in the first operand's dtype without promotion.
# outcome: wrong dtype
def dtype_of_self__Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).to(self.dtype).contiguous()


def dtype_of_self__Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).to(self.dtype).contiguous()


# breaks: It takes alpha for 1.
def ignores_alpha__Tensor(self, other, *, alpha=1):
    return torch.add(self, other).contiguous()


def ignores_alpha__Scalar(self, other, alpha=1):
    return torch.add(self, other).contiguous()


# breaks: It adds into its first operand where the shapes allow.
# outcome: input changed
def in_place__Tensor(self, other, *, alpha=1):
    if self.shape == other.shape and self.dtype == other.dtype and self.is_contiguous():
        return self.add_(other, alpha=alpha).clone()
    return torch.add(self, other, alpha=alpha).contiguous()


def in_place__Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()


# breaks: It leaves the elements past the last full 128 at 0.
def last_tile__Tensor(self, other, *, alpha=1):
    out = torch.add(self, other, alpha=alpha).contiguous()
    out.view(-1)[out.numel() // 128 * 128 :] = 0
    return out


def last_tile__Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()


# breaks: It rounds alpha * other to bfloat16 before it adds.
def product_rounded__Tensor(self, other, *, alpha=1):
    if other.is_floating_point():
        other, alpha = (other * alpha).bfloat16().to(other.dtype), 1
    return torch.add(self, other, alpha=alpha).contiguous()


def product_rounded__Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()


# breaks: Its add_Scalar takes alpha for 1; add_Tensor is right.
def scalar_ignores_alpha__Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()


def scalar_ignores_alpha__Scalar(self, other, alpha=1):
    return torch.add(self, other).contiguous()
