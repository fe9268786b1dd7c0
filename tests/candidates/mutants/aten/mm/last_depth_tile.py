# outcome: wrong value
# breaks: It forgets what is left of k after tiles of 16.

import torch


def mm(self, mat2):
    k = self.shape[1] // 16 * 16
    return (self[:, :k].double() @ mat2[:k].double()).to(self.dtype).contiguous()
