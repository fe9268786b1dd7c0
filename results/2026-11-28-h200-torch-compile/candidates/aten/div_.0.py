"""aten/div_ by torch 2.11.0, as `--model torch.compile` has it judged."""

import math

import torch
import torch._dynamo

torch._dynamo.config.recompile_limit = 1 << 16
torch._dynamo.config.accumulated_recompile_limit = 1 << 16

EXACT_FROM = 1 << 14


def is_large(value):
    if isinstance(value, (list, tuple)):
        sizes = [each for each in value if isinstance(each, int)]
        return math.prod(sizes) >= EXACT_FROM or any(map(is_large, value))
    return isinstance(value, torch.Tensor) and value.numel() >= EXACT_FROM


def compiled(operator):
    any_size = torch.compile(lambda *arguments, **named: operator(*arguments, **named), fullgraph=True)
    exact = torch.compile(lambda *each, **named: operator(*each, **named), fullgraph=True, dynamic=False)

    def call(*arguments, **named):
        inner = exact if is_large(arguments) or is_large([*named.values()]) else any_size
        try:
            return inner(*arguments, **named)
        except torch._dynamo.exc.Unsupported as error:
            raise NotImplementedError(str(error).partition("\n")[0]) from error

    return call


div__Tensor = compiled(torch.ops.aten.div_.Tensor)

div__Scalar = compiled(torch.ops.aten.div_.Scalar)

div__Tensor_mode = compiled(torch.ops.aten.div_.Tensor_mode)