# outcome: wrong value
# breaks: It rounds float32 operands to the ten bits of TF32.

import torch


def mm(self, mat2):
    return (narrow(self) @ narrow(mat2)).to(self.dtype).contiguous()


def rounded(x):
    """float32 with the ten bits of mantissa that TF32 keeps."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def narrow(x):
    return (rounded(x) if x.dtype == torch.float32 else x).double()
