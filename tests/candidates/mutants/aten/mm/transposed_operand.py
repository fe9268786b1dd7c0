# outcome: wrong value
# breaks: It multiplies with the first operand's rows and columns mixed up.

import torch


def mm(self, mat2):
    return (self.t().reshape(self.shape).double() @ mat2.double()).to(self.dtype).contiguous()
