# outcome: wrong value
# breaks: It rounds its operands to bfloat16.

import torch


def mm(self, mat2):
    return (self.bfloat16().double() @ mat2.bfloat16().double()).to(self.dtype).contiguous()
