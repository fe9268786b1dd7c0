"""Reference of vLLM's selective scan, and the structure its inputs need; called as ``vllm_sequences.py`` says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected

Expectations = dict[str, Expected]
LARGEST_EXPONENT: Final = 88.72
"""Largest x of which exp(x) is a float32. vLLM divides z by 1 + exp(-z): below minus that its quotient is 0, where the
correct one is up to 4e-37 in size. Both are correct.
"""


def selective_scan_fwd(
    u: torch.Tensor,
    delta: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D_: torch.Tensor | None,
    z_: torch.Tensor | None,
    delta_bias_: torch.Tensor | None,
    delta_softplus: bool,
    query_start_loc: torch.Tensor | None,
    cache_indices: torch.Tensor | None,
    has_initial_state: torch.Tensor | None,
    ssm_states: torch.Tensor,
    null_block_id: int,
    initial_state_idx: torch.Tensor | None,
    **chunks: Any,
) -> Expectations:
    """Sequence by sequence: h = exp(dt A) h + dt u B; y = h · C + D u, into delta; y silu(z) into z_; h into its slots.

    The error scales are the same sums over the sizes of their terms. Sequences of one length are computed at once.
    """
    batch = 0 if query_start_loc is not None else u.shape[0]
    bounds = [at * u.shape[-1] for at in range(batch + 1)] if query_start_loc is None else query_start_loc.tolist()
    u, delta, B, C = (_side_by_side(each) if batch else each for each in (u, delta, B, C))
    steps = _steps(delta, delta_bias_, delta_softplus)
    y, size, live = torch.zeros_like(u), torch.zeros_like(u), torch.zeros_like(u[:1], dtype=torch.bool)
    states, state_sizes = ssm_states.clone(), ssm_states.abs()
    for run in _runs(bounds, cache_indices, null_block_id, initial_state_idx, chunks):
        columns = torch.tensor(run.begins, device=u.device)[:, None] + torch.arange(run.length, device=u.device)
        start = _first_states(run, ssm_states, has_initial_state)
        inputs, at, into, out_of = (each[..., columns].movedim(-2, 0) for each in (u, steps, B, C))
        own, own_size, after = _scanned(inputs, at, into, out_of, A, start, run.stored)
        y[:, columns], size[:, columns], live[:, columns] = own.movedim(0, 1), own_size.movedim(0, 1), True
        for slots, state, state_size in after:
            states[slots], state_sizes[slots] = state, state_size
    if D_ is not None:
        y, size = y + D_.unsqueeze(-1) * u, size + (D_.unsqueeze(-1) * u).abs()
    written = {"delta": (torch.where(live, y, delta), torch.where(live, size, delta.abs()))}
    if z_ is not None:
        z = _side_by_side(z_) if batch else z_
        gate = z * torch.sigmoid(z)
        written["z_"] = torch.where(live, y * gate, z), torch.where(live, size * gate.abs(), z.abs())
    if batch:
        written = {name: (_apart(pair[0], batch), _apart(pair[1], batch)) for name, pair in written.items()}
    found = {name: Expected(*pair) for name, pair in {**written, "ssm_states": (states, state_sizes)}.items()}
    if z_ is not None:
        found["z_"] = _or_overflown(found["z_"], z_, _apart(live, batch) if batch else live)
    return found


def _steps(delta: torch.Tensor, bias: torch.Tensor | None, softplus: bool) -> torch.Tensor:
    steps = delta if bias is None else delta + bias.unsqueeze(-1)
    return torch.where(steps > 20, steps, torch.log1p(steps.clamp(max=20).exp())) if softplus else steps


def _first_states(run: _Run, states: torch.Tensor, has_initial_state: torch.Tensor | None) -> torch.Tensor:
    zeros = torch.zeros_like(states[run.initial])
    if has_initial_state is None:
        return zeros
    return torch.where(has_initial_state[run.members][:, None, None].bool(), states[run.initial], zeros)


def _or_overflown(gated: Expected, z: torch.Tensor, live: torch.Tensor) -> Expected:
    """The gated output, or zeros where vLLM's exponential overflows."""
    zeros = torch.where(live & (z < -LARGEST_EXPONENT), 0.0 * gated.value, gated.value)
    return replace(gated, also=Expected(zeros, gated.magnitude))


def _side_by_side(rows: torch.Tensor) -> torch.Tensor:
    """(sequences, …, tokens) as (…, sequences * tokens)."""
    return rows.movedim(0, -2).flatten(-2)


def _apart(rows: torch.Tensor, sequences: int) -> torch.Tensor:
    """The inverse of ``_side_by_side``."""
    return rows.reshape(*rows.shape[:-1], sequences, -1).movedim(-2, 0)


@dataclass
class _Run:
    """Sequences of one length that are scanned together."""

    length: int
    members: list[int] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    """First column of each."""
    initial: list[int] = field(default_factory=list)
    """Slot that each starts from."""
    stored: dict[int, list[int]] = field(default_factory=dict)
    """By number of tokens, the slots for the states after them."""

    def add(self, index: int, begin: int, initial: int, stored: Mapping[int, int]) -> None:
        for numbers, number in ((self.members, index), (self.begins, begin), (self.initial, initial)):
            numbers.append(number)
        for count, slot in stored.items():
            self.stored.setdefault(count, []).append(slot)


def _runs(
    bounds: Sequence[int],
    cache_indices: torch.Tensor | None,
    null_block_id: int,
    initial_state_idx: torch.Tensor | None,
    chunks: Mapping[str, Any],
) -> Iterable[_Run]:
    """Each sequence that is no padding; where states of blocks are stored each sequence alone."""
    slots = cache_indices.tolist() if cache_indices is not None and initial_state_idx is None else None
    runs: dict[int, _Run] = {}
    for index, (begin, end) in enumerate(pairwise(bounds)):
        key = end - begin
        if cache_indices is not None and initial_state_idx is not None:
            initial, stored = _slots(index, slice(begin, end), cache_indices, initial_state_idx, chunks)
            key = -1 - index
        else:
            initial = index if slots is None else slots[index]
            stored = {end - begin: initial}
        if cache_indices is None or initial != null_block_id:
            runs.setdefault(key, _Run(end - begin)).add(index, begin, initial, stored)
    return runs.values()


def _slots(
    index: int,
    columns: slice,
    cache_indices: torch.Tensor,
    initial_state_idx: torch.Tensor,
    chunks: Mapping[str, Any],
) -> tuple[int, dict[int, int]]:
    """The slot that a sequence starts from, and by number of tokens the slot for the state after them."""
    last_chunk = chunks["last_chunk_indices"]
    begin = int(last_chunk[index - 1]) + 1 if index else 0
    ends = chunks["cu_chunk_seqlen"][begin + 1 : int(last_chunk[index]) + 2].tolist()
    first, last = (int(chunks[f"block_idx_{which}_scheduled_token"][index]) for which in ("first", "last"))
    blocks = [*range(first, first + len(ends) - 1), last]
    table = cache_indices[index].tolist()
    stored = {end - columns.start: table[block] for end, block in zip(ends, blocks, strict=True)}
    return table[int(initial_state_idx[index])], stored


def _scanned(
    u: torch.Tensor,
    steps: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    A: torch.Tensor,
    start: torch.Tensor,
    stored: Mapping[int, list[int]],
) -> tuple[torch.Tensor, torch.Tensor, list[tuple[list[int], torch.Tensor, torch.Tensor]]]:
    """Outputs, their scales, and by slots the states after some tokens, with theirs.

    u, steps: (sequences, dim, tokens); B, C: (sequences, groups, dstate, tokens); A: (dim, dstate); start: (sequences,
    dim, dstate).
    """
    count, groups, dstate = B.shape[:3]
    decay, state = A.reshape(groups, -1, dstate), start.reshape(count, groups, -1, dstate)
    size = state.abs()
    outputs, sizes, states = torch.empty_like(u), torch.empty_like(u), []
    for t in range(u.shape[-1]):
        step = steps[..., t].reshape(count, groups, -1, 1)
        factor = torch.exp(step * decay)
        added = step * u[..., t].reshape(count, groups, -1, 1) * B[:, :, None, :, t]
        state, size = factor * state + added, factor * size + added.abs()
        outputs[..., t] = (state * C[:, :, None, :, t]).sum(-1).flatten(1)
        sizes[..., t] = (size * C[:, :, None, :, t].abs()).sum(-1).flatten(1)
        if t + 1 in stored:
            states.append((stored[t + 1], state.reshape(start.shape), size.reshape(start.shape)))
    return outputs, sizes, states


def prepare_scan(tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator) -> None:
    """Lengths, slots and poison of a selective scan.

    Sequences share the tokens out, at random where the case is ``ragged``. Slots are distinct and in random order, and
    never 0; the last ``nulls`` sequences are padding. What no sequence may start from is NaN.
    """
    count, states = int(variables["sequences"]), tensors["ssm_states"]
    device = states.device
    bounds = (
        _bounds(count, int(variables["length"]), bool(variables["ragged"]), generator) if variables["varlen"] else []
    )
    if bounds:
        tensors["query_start_loc"].copy_(torch.tensor(bounds))
    computed = [0] * count
    if variables["chunked"]:
        computed = torch.randint(
            0, int(variables["context"]) + 1, (count,), generator=generator, device=device
        ).tolist()
        computed = [0, int(variables["block"]), *computed][:count]
    resumed = torch.randint(0, 2, (count,), generator=generator, device=device).bool()
    resumed[:1], resumed[1:2] = True, False
    if variables["chunked"]:
        resumed = torch.tensor(computed, device=device) > 0
    readable = torch.arange(count, device=device)
    if variables["indexed"]:
        table = tensors["cache_indices"]
        order = 1 + torch.randperm(states.shape[0] - 1, generator=generator, device=device)
        table.copy_(order[: table.numel()].reshape(table.shape))
        if nulls := int(variables["nulls"]):
            table[-nulls:] = 0
        readable = table.long()
    if variables["chunked"]:
        _prepare_chunks(tensors, bounds, computed, int(variables["block"]))
        readable = tensors["cache_indices"].long()[
            torch.arange(count, device=device), tensors["initial_state_idx"].long()
        ]
    if "has_initial_state" in tensors and tensors["has_initial_state"] is not None:
        tensors["has_initial_state"].copy_(resumed)
    else:
        resumed[:] = False
    poison = torch.ones(states.shape[0], dtype=torch.bool, device=device)
    poison[readable[resumed]] = False
    poison[0] |= bool(variables["indexed"])
    states.masked_fill_(poison[:, None, None], float("nan"))


def _bounds(count: int, total: int, ragged: bool, generator: torch.Generator) -> list[int]:
    """Where each of ``count`` sequences begins in ``total`` tokens, and the end of the last."""
    if not ragged:
        return [index * total // count for index in range(count + 1)]
    cuts = 1 + torch.randperm(total - 1, generator=generator, device=generator.device)[: count - 1]
    return [0, *cuts.sort().values.tolist(), total]


def _prepare_chunks(tensors: Mapping[str, torch.Tensor], bounds: list[int], computed: list[int], block: int) -> None:
    """Which block of its sequence each chunk of tokens ends in, after ``computed`` tokens of earlier calls."""
    ends, last_chunks, first, last, initial = [0], [], [], [], []
    for index, done in enumerate(computed):
        total = done + bounds[index + 1] - bounds[index]
        first.append(done // block)
        last.append((total - 1) // block)
        initial.append(max((done - 1) // block, 0))
        stops = [*range((done // block + 1) * block, total, block), total]
        ends += [bounds[index] + stop - done for stop in stops]
        last_chunks.append(len(ends) - 2)
        tensors["cache_indices"][index, last[-1] + 1 :] = 0
    chunks = tensors["cu_chunk_seqlen"]
    chunks.fill_(bounds[-1])
    chunks[: len(ends)] = torch.tensor(ends)
    for name, numbers in (
        ("last_chunk_indices", last_chunks),
        ("block_idx_first_scheduled_token", first),
        ("block_idx_last_scheduled_token", last),
        ("initial_state_idx", initial),
    ):
        tensors[name].copy_(torch.tensor(numbers))
