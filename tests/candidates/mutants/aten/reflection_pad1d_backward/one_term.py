# outcome: wrong value
# breaks: It leaves the padding's gradients out.


def reflection_pad1d_backward(grad_output, self, padding):
    return grad_output.narrow(-1, padding[0], self.shape[-1]).contiguous().clone()


def reflection_pad1d_backward_grad_input(grad_output, self, padding, *, grad_input):
    return grad_input.copy_(grad_output.narrow(-1, padding[0], self.shape[-1]))
