# outcome: wrong value
# breaks: Its columns have the channels behind the positions in the block.

import torch


def im2col(self, kernel_size, dilation, padding, stride):
    out = torch.nn.functional.unfold(self, kernel_size, dilation, padding, stride)
    blocks = out.reshape(*out.shape[:-2], self.shape[-3], kernel_size[0] * kernel_size[1], out.shape[-1])
    return blocks.transpose(-3, -2).reshape(out.shape)


def im2col_out(self, kernel_size, dilation, padding, stride, *, out):
    return out.copy_(im2col(self, kernel_size, dilation, padding, stride))
