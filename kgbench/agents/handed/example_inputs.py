"""@TITLE@

Sizes are those at which the benchmark times; values are drawn here, with a seed of this file. @NOTE@

What you start sees no GPU (CUDA_VISIBLE_DEVICES is empty), so that the judge's clock is not disturbed.

    from example_inputs import names, inputs
    entry, arguments, keywords = inputs(names()[0])

``@PYTHON@ example_inputs.py`` lists the calls.
"""

import sys
from math import inf, log, nan  # noqa: F401

import torch

SEED = 20
CALLS = {}


def names(preset=None):
    """Names of the example calls, of one preset (cpu, gpu24, gpu80, gpu140) or of all."""
    return [name for name, call in CALLS.items() if preset in (None, call["preset"])]


def inputs(name, device="cpu", seed=SEED):
    """Entry's name, positional arguments and keyword arguments of one example call, newly made."""
    call = CALLS[name]
    generator = torch.Generator(device).manual_seed(seed)
    positional, keywords = [], {}
    for argument in call["arguments"]:
        value = made(argument["value"], device, generator)
        if argument["keyword_only"]:
            keywords[argument["name"]] = value
        else:
            positional.append(value)
    return call["entry"], positional, keywords


def made(value, device, generator):
    """One argument."""
    if isinstance(value, list):
        return [made(each, device, generator) for each in value]
    if not isinstance(value, dict):
        return value
    if "torch" in value:
        return getattr(torch, value["torch"])
    if "device" in value:
        return torch.device(device)
    if "Generator" in value:
        return torch.Generator(device).manual_seed(int(value["Generator"] or 0))
    return tensor(value, device, generator)


def tensor(spec, device, generator):
    """A tensor as its call has it: a view into storage, the storage itself, or the addresses of a batch's matrices."""
    dtype = getattr(torch, spec["dtype"])
    storage = torch.zeros(spec["extent"], dtype=dtype, device=device)
    view = storage.as_strided(spec["shape"], spec["strides"], spec["offset"])
    if spec["filled"] and storage.numel():
        # What is expanded has one value in each such dimension.
        shape = [1 if stride == 0 else size for size, stride in zip(spec["shape"], spec["strides"], strict=True)]
        target = storage.as_strided(shape, spec["strides"], spec["offset"])
        target.copy_(drawn(spec["draw"], shape, dtype, generator))
    if spec["passed"] == "storage":
        return storage[spec["offset"] :]
    if spec["passed"] == "pointers":
        return addresses(view, spec, device)
    if spec["lazy"]:
        view = view.conj() if spec["lazy"] == "conj" else torch._neg_view(view)
    return view.cpu() if spec["host"] else view


def addresses(view, spec, device):
    step = view.stride(0) * view.element_size()
    slots = spec["slots"] or range(view.shape[0])
    pointers = torch.tensor([view.data_ptr() + slot * step for slot in slots], dtype=torch.int64, device=device)
    # The matrices live as long as their addresses.
    pointers.matrices = view
    return pointers


def drawn(draw, shape, dtype, generator):
    """Values of the kind that the call has: so spread, and so bounded."""
    name, arguments = draw[0], draw[1:]
    return DRAWS.get(name, normal)(shape, dtype, generator, *(arguments if name in DRAWS else ())).to(dtype)


def normal(shape, dtype, generator, mean=0.0, std=1.0):
    if not (dtype.is_floating_point or dtype.is_complex):
        return integers(shape, dtype, generator, 0, 1 if dtype == torch.bool else 9)
    kind = dtype if dtype.is_complex or dtype == torch.float64 else torch.float32
    return torch.randn(shape, generator=generator, device=generator.device, dtype=kind) * std + mean


def uniform(shape, dtype, generator, low=0.0, high=1.0):
    return torch.rand(shape, generator=generator, device=generator.device) * (high - low) + low


def magnitudes(shape, dtype, generator, low, high):
    """Both signs, sizes even on a logarithmic scale."""
    if dtype.is_complex:
        return torch.complex(*(magnitudes(shape, torch.float64, generator, low, high) for _ in range(2)))
    sizes = uniform(shape, torch.float64, generator, log(low), log(high)).exp()
    return sizes * (integers(shape, dtype, generator, 0, 1) * 2 - 1)


def integers(shape, dtype, generator, low, high):
    return torch.randint(int(low), int(high) + 1, tuple(shape), generator=generator, device=generator.device)


def full(shape, dtype, generator, value):
    return torch.full(tuple(shape), value, dtype=dtype, device=generator.device)


def arange(shape, dtype, generator, start=0):
    count = torch.Size(shape).numel()
    return torch.arange(int(start), int(start) + count, device=generator.device).reshape(shape)


def distinct(shape, dtype, generator, limit=None):
    count = torch.Size(shape).numel()
    order = torch.randperm(int(count if limit is None else limit), generator=generator, device=generator.device)
    return order[:count].reshape(shape)


def dominant(shape, dtype, generator):
    """Square matrices with a large diagonal."""
    values = normal(shape, dtype, generator) * (0.5 / max(shape[-1], 1) ** 0.5)
    return values + torch.eye(shape[-1], dtype=values.dtype, device=generator.device) * 1.5


def choice(shape, dtype, generator, options):
    table = torch.tensor(options, device=generator.device)
    return table[integers(shape, dtype, generator, 0, len(options) - 1)]


def listed(shape, dtype, generator, values):
    table = torch.tensor(values, dtype=torch.float64, device=generator.device)
    return table[arange(shape, dtype, generator) % len(table)]


DRAWS = {
    "normal": normal,
    "uniform": uniform,
    "magnitudes": magnitudes,
    "integers": integers,
    "odd_integers": lambda shape, dtype, generator, limit: integers(shape, dtype, generator, -limit, limit),
    "signs": lambda shape, dtype, generator: integers(shape, dtype, generator, -1, 1),
    "full": full,
    "zeros": lambda shape, dtype, generator: full(shape, dtype, generator, 0),
    "arange": arange,
    "distinct": distinct,
    "permutation": distinct,
    "dominant": dominant,
    "choice": choice,
    "listed": listed,
}


def main():
    for name in names():
        words = ", ".join(f"{each['name']}={shown(each['value'])}" for each in CALLS[name]["arguments"])
        print(f"{name}: {CALLS[name]['entry']}({words})")
    if not names():
        print("no example calls: see the head of this file")
    return 0


def shown(value):
    if isinstance(value, dict) and "shape" in value:
        return f"{value['dtype']}{list(value['shape'])}"
    return repr(value)


if __name__ == "__main__":
    sys.exit(main())
