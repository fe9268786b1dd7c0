# outcome: wrong value
# breaks: It answers zeros whatever it is given.

import torch


def mm(self, mat2):
    return (self.double() @ mat2.double()).zero_().to(self.dtype).contiguous()
