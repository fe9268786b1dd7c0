# outcome: wrong value
# breaks: It takes the padding for one that repeats the end elements, too.

import torch


def _sum(grad_output, self, padding):
    w = self.shape[-1]
    place = torch.arange(grad_output.shape[-1], device=self.device) - padding[0]
    place = torch.where(place < 0, -1 - place, place)
    place = torch.where(place >= w, 2 * w - 1 - place, place)
    return torch.zeros(self.shape, dtype=grad_output.dtype, device=self.device).index_add_(-1, place, grad_output)


def reflection_pad1d_backward(grad_output, self, padding):
    return _sum(grad_output, self, padding)


def reflection_pad1d_backward_grad_input(grad_output, self, padding, *, grad_input):
    return grad_input.copy_(_sum(grad_output, self, padding))
