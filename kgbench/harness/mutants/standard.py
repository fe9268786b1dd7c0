"""What each standard mutant does: a problem's reference as its entry, with inputs or answers mutated in one way.

Runs in a trusted worker, in the candidate's place. ``kgbench/problem/mutants.py`` says in words what each breaks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch

from kgbench.harness.mutants import aten, blas
from kgbench.harness.mutants.inputs import as_row_major, bfloat16, float32, tf32
from kgbench.harness.verdict.narrow_dtypes import bits, either
from kgbench.harness.verdict.reference import ReferenceContext, ReferenceFunction, element, typed_outputs

TILE: Final = 128
"""Elements of the tiles of which a mutant leaves the last."""
_BYTE: Final = 0xFF
"""Byte of the sentinel in memory that nobody wrote."""


@dataclass(frozen=True)
class Call:
    """One call of a mutant, when the correct answer is known and nothing is written yet."""

    arguments: dict[str, Any]
    """All arguments by name; tensors are logical views."""
    context: ReferenceContext
    right: dict[str, torch.Tensor]
    """Outputs by name, in the problem's dtypes."""
    memory: dict[Any, dict[str, torch.Tensor]]
    """Answers that a mutant keeps between calls."""

    def left(self, name: str) -> torch.Tensor:
        """The content of an output that is not written: a written argument's old values; zeros for a returned tensor,
        or a sentinel where zeros would be correct.
        """
        if name in self.context.written:
            held: torch.Tensor = element(self.arguments, name).clone(memory_format=torch.contiguous_format)
            return held
        right = self.right[name]
        if right.numel() and not bool(right.to(torch.bool).any()):
            return _sentinel(right)
        return torch.zeros_like(right, memory_format=torch.contiguous_format)

    def inputs(self) -> list[torch.Tensor]:
        return [element(self.arguments, name) for name in self.readable()]

    def readable(self) -> list[str]:
        """Names of the tensors that are only read and have elements, in the signature's order."""
        return [name for name, each in self.context.stored.items() if name not in self.context.written and each.numel()]


def mutant_entry(name: str, function: ReferenceFunction, parameters: list[str]) -> Callable[..., Any]:
    """The mutant behind the entry's own signature; ``ReferenceContext`` says what it is called with beside."""
    mutator = MUTATORS[name]
    memory: dict[Any, dict[str, torch.Tensor]] = {}

    def entry(*args: Any, **kwargs: Any) -> Any:
        arguments = {**dict(zip(parameters, args, strict=False)), **kwargs}
        context = ReferenceContext.taken(arguments)
        given = {key: _mutated(mutator, value) for key, value in arguments.items()}
        mutator.arguments(given, context)
        if context.plain:
            return mutator.plain(function.value(given))
        try:
            right = mutator.outputs(function, given, arguments, context)
            _check_shapes(right, arguments, context)
        except (IndexError, RuntimeError, ValueError):
            if mutator.arguments is _all_as_given:
                raise
            # What it takes the arguments for makes no sense, so it leaves everything.
            call = Call(arguments, context, typed_outputs(function, arguments, arguments, context), memory)
            return _hand_out({key: call.left(key) for key in call.right}, call)
        call = Call(arguments, context, right, memory)
        answers = {key: mutator.answer(value, key, call) for key, value in right.items()}
        mutator.aside(call)
        return _hand_out(answers, call)

    return entry


def _check_shapes(right: dict[str, torch.Tensor], arguments: dict[str, Any], context: ReferenceContext) -> None:
    """Raises ValueError where a mutated argument gave an output another shape."""
    for name in context.written:
        if right[name].shape != element(arguments, name).shape:
            raise ValueError(f"{name} has shape {tuple(right[name].shape)}")


def _mutated(mutator: Mutator, value: Any) -> Any:
    if isinstance(value, list):
        return [_mutated(mutator, each) for each in value]
    return mutator.given(value) if _is_floating(value) else value


def _is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _hand_out(answers: dict[str, torch.Tensor], call: Call) -> Any:
    if call.context.alias:
        answers = {name: _like_the_view(answer, call.right[name]) for name, answer in answers.items()}
    return call.context.hand_out(answers, call.arguments)


def _like_the_view(answer: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """An answer with the strides of the correct view, so that only the mutation is wrong about it."""
    overlaps = any(stride == 0 and size > 1 for size, stride in zip(right.shape, right.stride(), strict=True))
    shares = answer.untyped_storage().data_ptr() == right.untyped_storage().data_ptr()
    if shares or overlaps or answer.shape != right.shape:
        return answer
    return torch.empty_strided(right.shape, right.stride(), dtype=right.dtype, device=right.device).copy_(answer)


# --- what is done to an answer: (right, name of the output, call) -> what is answered ---


def _right(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return right


def _zeros(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return torch.zeros_like(right, memory_format=torch.contiguous_format)


def _constant(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    values = _widest(right)
    finite = values[torch.isfinite(values)]
    mean = finite.to(torch.complex128 if right.is_complex() else torch.float64).mean() if finite.numel() else 0.0
    value = complex(mean) if right.is_complex() else float(mean)
    return torch.full(right.shape, value, device=right.device).to(right.dtype)


def _passthrough(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    """The first input of the output's shape, or the first, its elements repeated until there are enough."""
    found = call.inputs()
    if not found or not right.numel():
        return right
    if call.context.alias:
        return found[0]
    same = [each for each in found if each.shape == right.shape]
    flat = (same or found)[0].reshape(-1)
    return flat.repeat(math.ceil(right.numel() / flat.numel()))[: right.numel()].reshape(right.shape).to(right.dtype)


def _untouched(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    """Returned memory holds a sentinel, as freshly allocated memory may."""
    return call.left(name) if name in call.context.written else _sentinel(right)


def _sentinel(right: torch.Tensor) -> torch.Tensor:
    if right.dtype == torch.bool:
        return torch.ones(right.shape, dtype=right.dtype, device=right.device)
    poison = torch.full((right.numel() * right.element_size(),), _BYTE, dtype=torch.uint8, device=right.device)
    return poison.view(right.dtype).reshape(right.shape)


def _leaves(which: Callable[[int], slice]) -> Callable[[torch.Tensor, str, Call], torch.Tensor]:
    """Leaves a part of the elements, counted in row-major order; ``which`` says from their number which."""

    def answer(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
        flat = right.reshape(-1).clone()
        part = which(flat.numel())
        flat[part] = call.left(name).reshape(-1)[part]
        return flat.reshape(right.shape)

    return answer


def _leaves_last(dimension: int) -> Callable[[torch.Tensor, str, Call], torch.Tensor]:
    def answer(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
        if right.dim() < 2 or not right.numel():
            return right
        answered = right.clone(memory_format=torch.contiguous_format)
        answered.select(dimension, -1).copy_(call.left(name).select(dimension, -1))
        return answered

    return answer


def _shifted(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return bits(right.reshape(-1)).roll(1).view(right.dtype).reshape(right.shape)


def _transposed(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return right.mT.reshape(right.shape) if right.dim() >= 2 else right


def _negated(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return ~right if right.dtype == torch.bool else (-_widest(right)).to(right.dtype)


def _drops_nan(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return either(torch.isnan(_widest(right)), torch.zeros_like(right), right)


def _rounded_answer(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return bfloat16(right)


def _stale(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    key = tuple((each, value.dtype, value.shape) for each, value in call.right.items())
    kept = call.memory.setdefault(key, {})
    return kept.setdefault(name, right.clone())


def _returns_early(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return call.left(name) if call.arguments.get("k") == 0 else right


def _first_only(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return right if name == next(iter(call.right)) else call.left(name)


def _flattened(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return right.reshape(-1).clone()


def _other_dtype(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    if right.is_complex():
        return right.to(torch.complex64 if right.dtype == torch.complex128 else torch.complex128)
    return right.to(torch.float32 if right.dtype == torch.float64 else torch.float64)


def _copy(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return right.clone(memory_format=torch.contiguous_format)


def _storage_start(right: torch.Tensor, name: str, call: Call) -> torch.Tensor:
    return right.as_strided(right.shape, right.stride(), 0)


def _as_given(value: torch.Tensor) -> torch.Tensor:
    return value


def _widest(value: torch.Tensor) -> torch.Tensor:
    if value.is_complex():
        return value.to(torch.complex128)
    return value.to(torch.float64 if value.is_floating_point() else torch.int64)


def _as_it_is(value: Any) -> Any:
    return value


# --- what is done beside ---


def _nothing(call: Call) -> None:
    pass


def _all_as_given(given: dict[str, Any], context: ReferenceContext) -> None:
    pass


def _changes_input(call: Call) -> None:
    for value in [call.context.stored[name] for name in call.readable()][:1]:
        stored = value.conj() if value.is_conj() else torch._neg_view(value) if value.is_neg() else value
        first = stored.as_strided((1,), (1,), stored.storage_offset())
        if value.dtype == torch.bool:
            first.logical_not_()
        else:
            first.view(torch.uint8).bitwise_not_()


def _writes_around(call: Call) -> None:
    for name in call.context.written:
        view = call.context.stored[name]
        if not view.numel():
            continue
        extent = 1 + sum((size - 1) * stride for size, stride in zip(view.shape, view.stride(), strict=True))
        around = torch.ones(extent, dtype=torch.bool, device=view.device)
        live = call.context.live(name, element(call.arguments, name))
        around.as_strided(view.shape, view.stride(), 0)[call.context.slots(name)] = ~live
        flat = view.as_strided((extent,), (1,), view.storage_offset())
        flat.copy_(either(around, torch.zeros_like(flat), flat))


@dataclass(frozen=True)
class Mutator:
    """What one mutant does; each part is left as it is where nothing is said."""

    answer: Callable[[torch.Tensor, str, Call], torch.Tensor] = _right
    """Makes what is answered from the correct output, the output's name and the call."""
    given: Callable[[torch.Tensor], torch.Tensor] = _as_given
    """Changes each floating tensor that is computed with."""
    aside: Callable[[Call], None] = _nothing
    """Changes other memory of the call."""
    arguments: blas.Change = _all_as_given
    """Changes the arguments as a whole, in place."""
    outputs: Callable[..., dict[str, torch.Tensor]] = typed_outputs
    """Computes the outputs, in the reference's place."""
    plain: Callable[[Any], Any] = _as_it_is
    """Changes a Python value that is returned."""


MUTATORS: Final[dict[str, Mutator]] = {
    "zeros": Mutator(_zeros),
    "constant": Mutator(_constant),
    "passthrough": Mutator(_passthrough),
    "untouched": Mutator(_untouched),
    "half": Mutator(_leaves(lambda count: slice(count // 2, None))),
    "last_element": Mutator(_leaves(lambda count: slice(max(count - 1, 0), None))),
    "last_row": Mutator(_leaves_last(-2)),
    "last_column": Mutator(_leaves_last(-1)),
    "last_tile": Mutator(_leaves(lambda count: slice(count // TILE * TILE if count > TILE else count, None))),
    "shifted": Mutator(_shifted),
    "transposed": Mutator(_transposed),
    "negated": Mutator(_negated),
    "drops_nan": Mutator(_drops_nan),
    "bfloat16_output": Mutator(_rounded_answer),
    "bfloat16_inputs": Mutator(given=bfloat16),
    "tf32_inputs": Mutator(given=tf32),
    "float32_inputs": Mutator(given=float32),
    "ignores_strides": Mutator(given=as_row_major),
    "stale": Mutator(_stale),
    "first_output_only": Mutator(_first_only),
    "changes_input": Mutator(aside=_changes_input),
    "writes_around": Mutator(aside=_writes_around),
    "flattened": Mutator(_flattened),
    "other_dtype": Mutator(_other_dtype),
    "copy": Mutator(_copy),
    "storage_start": Mutator(_storage_start),
    "ignores_alpha": Mutator(arguments=blas.takes("alpha", 1.0)),
    "ignores_keepdim": Mutator(arguments=aten.ignores_keepdim),
    "negative_dim": Mutator(arguments=aten.counts_from_the_front),
    "last_tensor": Mutator(arguments=aten.forgets_the_last_tensor),
    "storage_offset": Mutator(given=aten.one_early),
    "flat_broadcast": Mutator(arguments=aten.reads_flat),
    "rounds_to_zero": Mutator(outputs=aten.rounds_to_zero),
    "narrow_sums": Mutator(outputs=aten.narrow_sums),
    "begins_anew": Mutator(outputs=aten.begins_anew),
    "ignores_seed": Mutator(outputs=aten.IgnoresSeed()),
    "ignores_generator": Mutator(outputs=aten.ignores_generator),
    "biased": Mutator(outputs=aten.drawn_by(aten.biased)),
    "same_blocks": Mutator(outputs=aten.drawn_by(aten.same_blocks)),
    "like_neighbours": Mutator(outputs=aten.drawn_by(aten.like_neighbours)),
    "another_type": Mutator(plain=aten.another_type),
    "single_precision": Mutator(plain=aten.in_single_precision),
    "ignores_beta": Mutator(arguments=blas.takes("beta", 0.0)),
    "alpha_zero_reads": Mutator(arguments=blas.multiplies_by_zero("alpha")),
    "beta_zero_reads": Mutator(arguments=blas.multiplies_by_zero("beta")),
    "never_transposes": Mutator(arguments=blas.transposes({"T": "N", "C": "N"})),
    "always_transposes": Mutator(arguments=blas.transposes({"N": "T"})),
    "never_conjugates": Mutator(arguments=blas.conjugates({"C": "T"})),
    "always_conjugates": Mutator(arguments=blas.conjugates({"T": "C"})),
    "lower_only": Mutator(arguments=blas.triangles({"U": "L"})),
    "upper_only": Mutator(arguments=blas.triangles({"L": "U"})),
    "unit_only": Mutator(arguments=blas.diagonals({"N": "U"})),
    "unit_ignored": Mutator(arguments=blas.diagonals({"U": "N"})),
    "left_only": Mutator(arguments=blas.sides({"R": "L"})),
    "right_only": Mutator(arguments=blas.sides({"L": "R"})),
    "packed_columns": Mutator(arguments=blas.packed_columns),
    "packed_batch": Mutator(arguments=blas.packed_batch),
    "packed_vectors": Mutator(arguments=blas.packed_vectors),
    "walks_forward": Mutator(arguments=blas.walks_forward),
    "returns_early": Mutator(_returns_early),
    "half_sums": Mutator(outputs=blas.half_sums),
}
"""Every standard mutant, by its name in kgbench/problem/mutants.py."""
