import torch


# breaks: It takes rows for adjacent, whatever their stride is.
def dense_rows(out, input, weight, epsilon):
    x = input.as_strided(input.shape, out.stride()).double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon) * weight.double())


# breaks: It turns NaN into 0.
def drops_nan(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_((x / torch.sqrt(mean + epsilon) * weight.double()).nan_to_num(0.0))


# breaks: It adds epsilon to the root, not to the mean.
def epsilon_outside(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / (torch.sqrt(mean) + epsilon) * weight.double())


# breaks: It takes the mean over the first half of the row.
def first_half_of_row(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x)[..., : (x.shape[-1] + 1) // 2].mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon) * weight.double())


# breaks: It squares and sums in float16.
def half_precision(out, input, weight, epsilon):
    x = input.double()
    mean = (x.half() * x.half()).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon) * weight.double())


# breaks: It subtracts the mean first.
def layer_norm(out, input, weight, epsilon):
    x = input.double()
    x = x - x.mean(-1, keepdim=True)
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon) * weight.double())


# breaks: It leaves epsilon out.
def no_epsilon(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean) * weight.double())


# breaks: It leaves the weight out.
def no_weight(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon))


# breaks: It leaves the result in its input, too.
# outcome: input changed
def normalises_input(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon) * weight.double())
    input.copy_(out)
