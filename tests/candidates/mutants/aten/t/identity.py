# outcome: wrong shape
# breaks: It hands a matrix back as it is.

import torch


def t(self):
    if self.ndim < 2:
        return self.view(self.shape)
    return self.view(self.shape)
