# outcome: wrong value
# breaks: It forgets the rows that do not fill a tile of 16.

import torch


def mm(self, mat2):
    out = (self.double() @ mat2.double()).to(self.dtype)
    out[self.shape[0] // 16 * 16 :] = 0
    return out.contiguous()
