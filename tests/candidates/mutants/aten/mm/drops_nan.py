# outcome: wrong value
# breaks: It takes a NaN or an infinity for 0.

import torch


def mm(self, mat2):
    return (self.double().nan_to_num(0.0, 0.0, 0.0) @ mat2.double()).to(self.dtype).contiguous()
