# outcome: wrong dtype
# breaks: It answers in float32 always.

import torch


def mm(self, mat2):
    return (self.double() @ mat2.double()).float().contiguous()
