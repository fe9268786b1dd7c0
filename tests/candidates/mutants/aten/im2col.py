import torch


# breaks: Its columns have the channels behind the positions in the block.
def channels_last(self, kernel_size, dilation, padding, stride):
    out = torch.nn.functional.unfold(self, kernel_size, dilation, padding, stride)
    blocks = out.reshape(*out.shape[:-2], self.shape[-3], kernel_size[0] * kernel_size[1], out.shape[-1])
    return blocks.transpose(-3, -2).reshape(out.shape)


def channels_last__out(self, kernel_size, dilation, padding, stride, *, out):
    return out.copy_(channels_last(self, kernel_size, dilation, padding, stride))


# breaks: It takes padding for dilation and dilation for padding.
# outcome: wrong shape
def order_of_arguments(self, kernel_size, dilation, padding, stride):
    return torch.nn.functional.unfold(self, kernel_size, [max(p, 1) for p in padding], dilation, stride)


def order_of_arguments__out(self, kernel_size, dilation, padding, stride, *, out):
    return out.copy_(torch.nn.functional.unfold(self, kernel_size, dilation, padding, stride))


# breaks: It pads with the elements at the edge.
def padding_repeats_edge(self, kernel_size, dilation, padding, stride):
    if not self.numel() or self.is_complex():
        return torch.nn.functional.unfold(self, kernel_size, dilation, padding, stride)
    (p, q), x = padding, self
    x = torch.nn.functional.pad(x, (q, q, p, p), mode="replicate")
    return torch.nn.functional.unfold(x, kernel_size, dilation, [0, 0], stride)


def padding_repeats_edge__out(self, kernel_size, dilation, padding, stride, *, out):
    return out.copy_(padding_repeats_edge(self, kernel_size, dilation, padding, stride))
