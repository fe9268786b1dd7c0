# outcome: wrong value
# breaks: It rounds the running sum to bfloat16 after every 16 products.

import torch


def mm(self, mat2):
    total = torch.zeros((self.shape[0], mat2.shape[1]), dtype=torch.bfloat16, device=self.device)
    for first in range(0, self.shape[1], 16):
        total += (self[:, first : first + 16].double() @ mat2[first : first + 16].double()).bfloat16()
    return total.to(self.dtype)
