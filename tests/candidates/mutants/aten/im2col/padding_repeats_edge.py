# outcome: wrong value
# breaks: It pads with the elements at the edge.

import torch


def im2col(self, kernel_size, dilation, padding, stride):
    if not self.numel() or self.is_complex():
        return torch.nn.functional.unfold(self, kernel_size, dilation, padding, stride)
    (p, q), x = padding, self
    x = torch.nn.functional.pad(x, (q, q, p, p), mode="replicate")
    return torch.nn.functional.unfold(x, kernel_size, dilation, [0, 0], stride)


def im2col_out(self, kernel_size, dilation, padding, stride, *, out):
    return out.copy_(im2col(self, kernel_size, dilation, padding, stride))
