# outcome: wrong value
# breaks: It takes align_corners for True.

import torch


def affine_grid_generator(theta, size, align_corners):
    return torch.ops.aten.affine_grid_generator(theta, size, True)


def affine_grid_generator_out(theta, size, align_corners, *, out):
    return out.copy_(torch.ops.aten.affine_grid_generator(theta, size, True))
