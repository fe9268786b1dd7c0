# problem: aten/add
# outcome: wrong value
# device: cuda
"""Works on a stream that nobody waits for, behind a long sleep: a clock that watches the current stream sees nothing."""

import torch

STREAM = None


def beside(self, other, alpha):
    global STREAM
    STREAM = STREAM or torch.cuda.Stream()
    shape = torch.broadcast_shapes(self.shape, getattr(other, "shape", ()))
    out = torch.zeros(shape, dtype=torch.result_type(self, other), device=self.device)
    STREAM.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(STREAM):
        torch.cuda._sleep(2_000_000)
        out.copy_(torch.add(self, other, alpha=alpha))
    return out


def add_Tensor(self, other, *, alpha=1):
    return beside(self, other, alpha)


def add_Scalar(self, other, alpha=1):
    return beside(self, other, alpha)
