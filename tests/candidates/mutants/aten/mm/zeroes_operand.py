# outcome: input changed
# breaks: It clears an operand when it is done.

import torch


def mm(self, mat2):
    out = (self.double() @ mat2.double()).to(self.dtype)
    mat2.zero_()
    return out
