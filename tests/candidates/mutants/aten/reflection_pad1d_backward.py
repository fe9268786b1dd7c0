import torch


# breaks: It adds to what grad_input held.
def adds_to_grad_input(grad_output, self, padding):
    return torch.ops.aten.reflection_pad1d_backward(grad_output, self, padding)


def adds_to_grad_input__grad_input(grad_output, self, padding, *, grad_input):
    return grad_input.add_(torch.ops.aten.reflection_pad1d_backward(grad_output, self, padding))


# breaks: It leaves the padding's gradients out.
def one_term(grad_output, self, padding):
    return grad_output.narrow(-1, padding[0], self.shape[-1]).contiguous().clone()


def one_term__grad_input(grad_output, self, padding, *, grad_input):
    return grad_input.copy_(grad_output.narrow(-1, padding[0], self.shape[-1]))


def _sum(grad_output, self, padding):
    w = self.shape[-1]
    place = torch.arange(grad_output.shape[-1], device=self.device) - padding[0]
    place = torch.where(place < 0, -1 - place, place)
    place = torch.where(place >= w, 2 * w - 1 - place, place)
    return torch.zeros(self.shape, dtype=grad_output.dtype, device=self.device).index_add_(-1, place, grad_output)


# breaks: It takes the padding for one that repeats the end elements, too.
def repeats_edge(grad_output, self, padding):
    return _sum(grad_output, self, padding)


def repeats_edge__grad_input(grad_output, self, padding, *, grad_input):
    return grad_input.copy_(_sum(grad_output, self, padding))
