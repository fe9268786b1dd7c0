# outcome: wrong value
# breaks: It sums over the first half of k.

import torch


def mm(self, mat2):
    k = (self.shape[1] + 1) // 2
    return (self[:, :k].double() @ mat2[:k].double()).to(self.dtype).contiguous()
