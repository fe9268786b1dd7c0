# problem: aten/neg
# outcome: passed
# device: cpu
"""Turns signs by numpy in pieces of 32 elements: where it is watched the observer takes longer than its work."""

import numpy
import torch

SIGNS = {8: numpy.int64(-(1 << 63)), 4: numpy.int32(-(1 << 31)), 2: numpy.int16(-(1 << 15))}
INTEGERS = {8: numpy.int64, 4: numpy.int32, 2: numpy.int16}
PIECE = 32


def neg(self):
    out = self.contiguous().clone()
    parts = torch.view_as_real(out) if out.is_complex() else out
    if parts.dtype == torch.bfloat16:
        values = parts.view(torch.int16).numpy().reshape(-1)
    else:
        values = parts.numpy().reshape(-1)
    if not parts.dtype.is_floating_point:
        numpy.invert(values, out=values)
        numpy.add(values, values.dtype.type(1), out=values)
        return out
    bits = values.view(INTEGERS[parts.element_size()])
    sign = SIGNS[parts.element_size()]
    for at in range(0, bits.size, PIECE):
        numpy.bitwise_xor(bits[at : at + PIECE], sign, out=bits[at : at + PIECE])
    return out
