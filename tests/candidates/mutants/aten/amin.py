import torch


# breaks: Compares bytes as if they had a sign.
def bytes_with_sign(self, dim=(), keepdim=False):
    if self.dtype != torch.uint8:
        return torch.amin(self, dim, keepdim)
    return torch.amin(self.view(torch.int8), dim, keepdim).view(torch.uint8)


def bytes_with_sign__out(self, dim=(), keepdim=False, *, out):
    return out.copy_(bytes_with_sign(self, dim, keepdim))
