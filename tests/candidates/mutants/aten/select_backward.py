import torch


# breaks: It leaves what out held where the gradient is zero.
def adds_to_out(grad_output, input_sizes, dim, index):
    return torch.ops.aten.select_backward(grad_output, input_sizes, dim, index)


def adds_to_out__out(grad_output, input_sizes, dim, index, *, out):
    out.select(dim, index).copy_(grad_output)
    return out


# breaks: It takes a negative index for the first.
def index_from_front(grad_output, input_sizes, dim, index):
    return torch.ops.aten.select_backward(grad_output, input_sizes, dim, max(index, 0))


def index_from_front__out(grad_output, input_sizes, dim, index, *, out):
    return out.copy_(index_from_front(grad_output, input_sizes, dim, index))
