# outcome: wrong shape
# breaks: It takes padding for dilation and dilation for padding.

import torch


def im2col(self, kernel_size, dilation, padding, stride):
    return torch.nn.functional.unfold(self, kernel_size, [max(p, 1) for p in padding], dilation, stride)


def im2col_out(self, kernel_size, dilation, padding, stride, *, out):
    return out.copy_(torch.nn.functional.unfold(self, kernel_size, dilation, padding, stride))
