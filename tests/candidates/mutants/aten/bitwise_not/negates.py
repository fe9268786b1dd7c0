# outcome: wrong value
# breaks: It changes the sign: -x in place of -x - 1.

import torch


def bitwise_not(self):
    return torch.logical_not(self) if self.dtype == torch.bool else (-self).contiguous()
