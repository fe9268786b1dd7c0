# outcome: wrong shape
# breaks: It answers the transposed product.

import torch


def mm(self, mat2):
    return (self.double() @ mat2.double()).to(self.dtype).t().contiguous()
