"""The module of a problem's file, made and run where no candidate is: its state, inputs and outputs."""

from __future__ import annotations

import contextlib
import copy
import functools
import linecache
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

from kgbench.harness.verdict.secret_draws import SecretGenerator, renewed
from kgbench.harness.wire.device import GPU
from kgbench.problem.modules import TRUSTED_ENTRY, ModuleSource

WIDE: Final = 8.0
"""Factor of the value set ``wide``."""
_SEED_BITS: Final = 32
CONSTANT_SPREAD: Final = 0.5
"""A parameter that holds one number only is drawn from this share below it to this share above; around 0 absolutely."""


class ModuleError(ValueError):
    """A problem's file cannot be used; the text says why."""


class TrustedModule:
    """The file's ``Model`` with parameters drawn from a secret, in its own dtypes and in float64."""

    def __init__(self, source: ModuleSource, secret: str, device: torch.device) -> None:
        """Raises ModuleError where the file has no module that can be made."""
        self.source = source
        self.device = device
        self._names: dict[int | None, dict[str, Any]] = {}
        self.init = list(self.function("get_init_inputs")())
        self.model = self._made(secret).to(device)
        _vary_constants(self.model, SecretGenerator(device, f"{secret}/constants".encode()))
        self.parameters = [name for name, _ in self.model.named_parameters()]
        self.state = dict(self.model.state_dict())
        self.runs_s = 0.0
        """Seconds that the quickest run took, its outputs included."""

    def function(self, name: str, batch: int | None = None) -> Any:
        """A name that the file defines, with another batch size where one is given. Raises ModuleError."""
        if batch not in self._names:
            self._names[batch] = run_file(self.source, batch)
        found = self._names[batch].get(name)
        if found is None:
            raise ModuleError(f"{self.source.file} defines no {name}")
        return found

    def _made(self, secret: str) -> torch.nn.Module:
        made = self.function(TRUSTED_ENTRY)
        with seeded(SecretGenerator(torch.device("cpu"), f"{secret}/weights".encode())):
            model = made(*self.init)
        if not isinstance(model, torch.nn.Module):
            raise ModuleError(f"{self.source.file}: {TRUSTED_ENTRY} is no torch.nn.Module")
        return model

    @functools.cached_property
    def exact(self) -> torch.nn.Module:
        """The same in float64, tensors that are no part of its state included."""
        twin = copy.deepcopy(self.model).double()
        for part in twin.modules():
            for name, value in vars(part).items():
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    setattr(part, name, value.to(self.device, torch.float64))
        return twin

    def sibling(self, secret: str, *, same_state: bool) -> TrustedModule:
        """Made from another secret; with the state of this one where asked."""
        other = TrustedModule(self.source, secret, self.device)
        if same_state:
            other.model.load_state_dict(self.state)
        return other

    @functools.cached_property
    def other_weights(self) -> TrustedModule:
        """The same module with other parameters."""
        return self.sibling("other weights", same_state=False)

    def inputs(self, generator: torch.Generator, values: str = "default", batch: int | None = None) -> list[Any]:
        """What ``get_inputs`` gives, drawn from the generator in one of the value sets, on the device."""
        draw = self.function("get_inputs", batch)
        with seeded(generator), self.device, _OtherDraws(values):
            drawn = list(draw())
        return [each.to(self.device) if isinstance(each, torch.Tensor) else each for each in drawn]

    def run(self, inputs: Sequence[Any], copy_of: Callable[[Any], Any] | None = None) -> list[torch.Tensor]:
        """Its outputs in its own dtypes, for a copy of each input. Its buffers and the inputs stay as they are."""
        begun = time.monotonic()
        outputs = _outputs(self.model, [(copy_of or copied)(each) for each in inputs])
        if self.device.type == "cuda":
            GPU.wait(self.device)
        took = time.monotonic() - begun
        self.runs_s = min(self.runs_s or took, took)
        return outputs

    def run_exact(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The same in float64."""
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return _outputs(self.exact, [_doubled(each) for each in inputs])
        finally:
            torch.set_default_dtype(default)


def run_file(source: ModuleSource, batch: int | None = None) -> dict[str, Any]:
    """What the file defines. Raises ModuleError with what it raised."""
    linecache.cache[source.file] = (len(source.text), None, source.text.splitlines(keepends=True), source.file)
    names: dict[str, Any] = {"__name__": "kgbench_problem", "__file__": source.file}
    try:
        tree = source.with_batch(batch) if batch is not None else source.text
        exec(compile(tree, source.file, "exec"), names)
    except Exception as error:
        raise ModuleError(f"{source.file} cannot be run: {type(error).__name__}: {error}") from error
    return names


@contextlib.contextmanager
def seeded(generator: torch.Generator) -> Iterator[None]:
    """Whatever draws from a default generator meanwhile draws what this one gives."""
    state = renewed(generator).get_state()
    if not isinstance(generator, SecretGenerator):
        torch.rand(1, generator=generator, device=generator.device)
    number = int(torch.randint(1 << _SEED_BITS, (1,), generator=generator, device=generator.device))
    held = torch.get_rng_state()
    torch.set_rng_state(state) if generator.device.type == "cpu" else torch.manual_seed(number)
    if generator.device.type == "cuda":
        GPU.set_random_state(state, generator.device)
    random.seed(number)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(number)
    try:
        yield
    finally:
        torch.set_rng_state(held)


class _OtherDraws(TorchFunctionMode):
    """Has ``torch.rand`` and ``torch.randn`` draw in another value set; what the file makes of it stays its own."""

    def __init__(self, values: str) -> None:
        super().__init__()
        self.values = values

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        drawn = func(*args, **(kwargs or {}))
        if self.values == "default" or func not in _UNIFORM | _NORMAL:
            return drawn
        centred = drawn * 2 - 1 if func in _UNIFORM else drawn
        return centred * WIDE if self.values == "wide" else centred


_UNIFORM: Final = frozenset((torch.rand, torch.rand_like))
_NORMAL: Final = frozenset((torch.randn, torch.randn_like))


def _outputs(model: torch.nn.Module, inputs: Sequence[Any]) -> list[torch.Tensor]:
    buffers = {name: each.clone() for name, each in model.named_buffers()}
    with torch.no_grad():
        return flat(torch.func.functional_call(model, buffers, tuple(inputs)))


def flat(value: Any) -> list[torch.Tensor]:
    """All tensors that a module returned, one after the other. Raises ModuleError where it returned something else."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for each in value if each is not None for tensor in flat(each)]
    raise ModuleError(f"its forward returns {type(value).__name__}, which is no tensor")


def copied(value: Any) -> Any:
    """A tensor's clone, and anything else as it is."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def _doubled(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to(torch.float64, copy=True)
    return copied(value)


def _vary_constants(model: torch.nn.Module, generator: torch.Generator) -> None:
    """Draw parameters that hold one number only, such as scales of 1 and biases of 0: who leaves them out is seen."""
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.is_floating_point() or not parameter.numel():
                continue
            first = parameter.reshape(-1)[0]
            if bool((parameter == first).all()):
                drawn = torch.rand(parameter.shape, generator=generator, device=generator.device) * 2 - 1
                spread = CONSTANT_SPREAD * (float(first) or 1.0)
                parameter.add_(drawn.to(parameter) * spread)


def full_precision() -> None:
    """Have float32 mean float32 in this process, convolutions included."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
