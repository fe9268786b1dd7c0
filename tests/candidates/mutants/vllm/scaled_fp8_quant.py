import torch


# breaks: It ignores the upper bound of scales per token.
def ignores_bound__static(result, input, scale):
    rows, columns = (input.shape[0] // scale.shape[0], input.shape[1] // scale.shape[-1])
    s = scale if scale.dim() == 1 else scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    result.copy_((input.float() / s).clamp(-448, 448))


def ignores_bound__dynamic(result, input, scale):
    scale.copy_(input.abs().amax().float() / 448)
    result.copy_((input.float() / scale).clamp(-448, 448))


def ignores_bound__per_token(result, input, scale, scale_ub):
    largest = input.abs().amax(-1, keepdim=True).float()
    if False:
        largest = torch.minimum(largest, scale_ub)
    scale.copy_((largest / 448).clamp(min=1 / (448 * 512)))
    result.copy_((input.float() / scale).clamp(-448, 448))


# breaks: It multiplies by the given scales.
def multiplies_by_scale__static(result, input, scale):
    rows, columns = (input.shape[0] // scale.shape[0], input.shape[1] // scale.shape[-1])
    s = scale if scale.dim() == 1 else scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    result.copy_((input.float() * s).clamp(-448, 448))


def multiplies_by_scale__dynamic(result, input, scale):
    scale.copy_(input.abs().amax().float() / 448)
    result.copy_((input.float() / scale).clamp(-448, 448))


def multiplies_by_scale__per_token(result, input, scale, scale_ub):
    largest = input.abs().amax(-1, keepdim=True).float()
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub)
    scale.copy_((largest / 448).clamp(min=1 / (448 * 512)))
    result.copy_((input.float() / scale).clamp(-448, 448))


# breaks: It divides rows of zeros by a scale of zero.
def no_smallest_scale__static(result, input, scale):
    rows, columns = (input.shape[0] // scale.shape[0], input.shape[1] // scale.shape[-1])
    s = scale if scale.dim() == 1 else scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    result.copy_((input.float() / s).clamp(-448, 448))


def no_smallest_scale__dynamic(result, input, scale):
    scale.copy_(input.abs().amax().float() / 448)
    result.copy_((input.float() / scale).clamp(-448, 448))


def no_smallest_scale__per_token(result, input, scale, scale_ub):
    largest = input.abs().amax(-1, keepdim=True).float()
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub)
    scale.copy_(largest / 448)
    result.copy_(torch.where(scale == 0, 0, input.float() / scale).clamp(-448, 448))


# breaks: It reads column-major scales as if they were row-major.
def transposed_scales__static(result, input, scale):
    s = scale
    if scale.dim() == 2:
        dense = scale.as_strided(scale.shape, (scale.shape[1], 1))
        rows, columns = input.shape[0] // scale.shape[0], input.shape[1] // scale.shape[1]
        s = dense.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    result.copy_((input.float() / s).clamp(-448, 448))


def transposed_scales__dynamic(result, input, scale):
    scale.copy_(input.abs().amax().float() / 448)
    result.copy_((input.float() / scale).clamp(-448, 448))


def transposed_scales__per_token(result, input, scale, scale_ub):
    largest = input.abs().amax(-1, keepdim=True).float()
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub)
    scale.copy_((largest / 448).clamp(min=1 / (448 * 512)))
    result.copy_((input.float() / scale).clamp(-448, 448))
