import torch


# breaks: It takes align_corners for True.
def align_corners_always(theta, size, align_corners):
    return torch.ops.aten.affine_grid_generator(theta, size, True)


def align_corners_always__out(theta, size, align_corners, *, out):
    return out.copy_(torch.ops.aten.affine_grid_generator(theta, size, True))


# breaks: It takes align_corners for False.
def align_corners_never(theta, size, align_corners):
    return torch.ops.aten.affine_grid_generator(theta, size, False)


def align_corners_never__out(theta, size, align_corners, *, out):
    return out.copy_(torch.ops.aten.affine_grid_generator(theta, size, False))
