"""References of vLLM problems about whole sequences: the selective scan, the indexes of sparse attention.

The reference functions take their entry's parameters by name, floating tensors as float64. ``prepare_*`` finish drawn
inputs in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected

Expectations = dict[str, Expected]


# --- the selective scan ---


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
    block_idx_first_scheduled_token: torch.Tensor | None,
    block_idx_last_scheduled_token: torch.Tensor | None,
    cu_chunk_seqlen: torch.Tensor | None,
    last_chunk_indices: torch.Tensor | None,
    block_size: int,
) -> Expectations:
    """Sequence by sequence: h = exp(dt A) h + dt u B; y = h · C + D u, into delta; y silu(z) into z_; h into its slots.

    The error scales are the same sums over the sizes of their terms.
    """
    steps = delta if delta_bias_ is None else delta + delta_bias_.unsqueeze(-1)
    if delta_softplus:
        steps = torch.where(steps > 20, steps, torch.log1p(steps.clamp(max=20).exp()))
    values = {"delta": delta.clone(), "ssm_states": ssm_states.clone()} | ({} if z_ is None else {"z_": z_.clone()})
    scales = {name: value.abs() for name, value in values.items()}
    chunks = (cu_chunk_seqlen, last_chunk_indices, block_idx_first_scheduled_token, block_idx_last_scheduled_token)
    for index, columns in enumerate(_sequences(u, query_start_loc)):
        initial, stored = _slots(index, columns, cache_indices, initial_state_idx, block_size, *chunks)
        if cache_indices is not None and initial == null_block_id:
            continue
        resumed = has_initial_state is not None and bool(has_initial_state[index])
        start = ssm_states[initial] if resumed else torch.zeros_like(ssm_states[0])
        where: Any = (..., columns) if query_start_loc is not None else index
        y, size, states = _scanned(u[where], steps[where], B[where], C[where], A, start, stored)
        if D_ is not None:
            y, size = y + D_.unsqueeze(-1) * u[where], size + (D_.unsqueeze(-1) * u[where]).abs()
        values["delta"][where], scales["delta"][where] = y, size
        if z_ is not None:
            gate = z_[where] * torch.sigmoid(z_[where])
            values["z_"][where], scales["z_"][where] = y * gate, size * gate.abs()
        for slot, (state, state_size) in states.items():
            values["ssm_states"][slot], scales["ssm_states"][slot] = state, state_size
    return {name: Expected(value, scales[name]) for name, value in values.items()}


def _sequences(u: torch.Tensor, query_start_loc: torch.Tensor | None) -> list[slice]:
    """Per sequence its columns."""
    if query_start_loc is None:
        return [slice(0, u.shape[-1])] * u.shape[0]
    bounds = query_start_loc.tolist()
    return [slice(begin, end) for begin, end in pairwise(bounds)]


def _slots(
    index: int,
    columns: slice,
    cache_indices: torch.Tensor | None,
    initial_state_idx: torch.Tensor | None,
    block_size: int,
    cu_chunk_seqlen: torch.Tensor | None,
    last_chunk_indices: torch.Tensor | None,
    first_block: torch.Tensor | None,
    last_block: torch.Tensor | None,
) -> tuple[int, dict[int, int]]:
    """The slot that a sequence starts from, and by number of tokens the slot for the state after them."""
    count = columns.stop - columns.start
    if cache_indices is None:
        return index, {count: index}
    if initial_state_idx is None or cu_chunk_seqlen is None or last_chunk_indices is None:
        slot = int(cache_indices[index])
        return slot, {count: slot}
    assert first_block is not None
    assert last_block is not None
    begin = int(last_chunk_indices[index - 1]) + 1 if index else 0
    ends = cu_chunk_seqlen[begin + 1 : int(last_chunk_indices[index]) + 2].tolist()
    blocks = [int(first_block[index]) + n for n in range(len(ends) - 1)] + [int(last_block[index])]
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
    stored: Mapping[int, int],
) -> tuple[torch.Tensor, torch.Tensor, dict[int, tuple[torch.Tensor, torch.Tensor]]]:
    """Outputs (dim, tokens), their error scales, and by slot the state and its error scale.

    u, steps: (dim, tokens); B, C: (groups, dstate, tokens); A, start: (dim, dstate).
    """
    groups, dstate = B.shape[:2]
    decay, state = A.reshape(groups, -1, dstate), start.reshape(groups, -1, dstate)
    size = state.abs()
    outputs, sizes, states = torch.empty_like(u), torch.empty_like(u), {}
    for t in range(u.shape[-1]):
        step = steps[:, t].reshape(groups, -1, 1)
        factor = torch.exp(step * decay)
        added = step * u[:, t].reshape(groups, -1, 1) * B[:, None, :, t]
        state, size = factor * state + added, factor * size + added.abs()
        outputs[:, t] = (state * C[:, None, :, t]).sum(-1).flatten()
        sizes[:, t] = (size * C[:, None, :, t].abs()).sum(-1).flatten()
        if t + 1 in stored:
            states[stored[t + 1]] = (state.reshape(A.shape), size.reshape(A.shape))
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


# --- indexes of sparse attention ---


def convert_vertical_slash_indexes(
    block_count: torch.Tensor,
    block_offset: torch.Tensor,
    column_count: torch.Tensor,
    column_index: torch.Tensor,
    q_seqlens: torch.Tensor,
    kv_seqlens: torch.Tensor,
    vertical_indexes: torch.Tensor,
    slash_indexes: torch.Tensor,
    context_size: int,
    block_size_M: int,
    block_size_N: int,
    causal: bool,
) -> Expectations:
    """Per block of query rows the key blocks that its diagonals cover, and the columns outside of these."""
    begin = block_size_M * torch.arange(block_count.shape[-1], device=q_seqlens.device)
    queries, keys = q_seqlens.long()[:, None, None], kv_seqlens.long()[:, None, None]
    end = begin + block_size_M + keys - (queries if causal else 0)
    starts, stops = _spans(slash_indexes.long(), begin, end, block_size_M, causal)
    offsets, blocks = _blocks_of(starts, stops, keys, block_size_N)
    columns = vertical_indexes.long()[:, :, None].expand(*blocks.shape, -1).contiguous()
    before = torch.searchsorted(starts, columns, right=True) - 1
    covered = (before >= 0) & (columns < stops.gather(-1, before.clamp(min=0)))
    last = torch.where(starts < _NEVER, starts, -1).amax(-1, keepdim=True) if causal else keys.unsqueeze(-1)
    listed = ~covered & (columns < last)
    alive = (begin < queries).expand_as(blocks)
    counts = {"block_count": blocks, "column_count": listed.sum(-1)}
    lists = {
        "block_offset": (offsets, block_offset, blocks),
        "column_index": (
            columns.gather(-1, torch.argsort((~listed).long(), dim=-1, stable=True)),
            column_index,
            listed.sum(-1),
        ),
    }
    expected = {
        name: torch.where(alive, count, block_count if name == "block_count" else column_count)
        for name, count in counts.items()
    }
    for name, (wanted, given, count) in lists.items():
        place = torch.arange(given.shape[-1], device=given.device)
        expected[name] = torch.where(alive.unsqueeze(-1) & (place < count.unsqueeze(-1)), wanted, given)
    return {name: Expected(value.to(torch.int32)) for name, value in expected.items()}


_NEVER: Final = 1 << 40
"""Position past the end of every sequence."""


def _spans(
    slashes: torch.Tensor, begin: torch.Tensor, end: torch.Tensor, size: int, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Per row the spans of keys that its diagonals cover, merged, in order; unused ones lie at ``_NEVER``.

    slashes: (batch, heads, diagonals), descending; begin: (rows,); end: (batch, 1, rows). Both results are
    (batch, heads, rows, diagonals).
    """
    batch, heads, count = slashes.shape
    shape = (batch, heads, begin.shape[0])
    starts = torch.full((*shape, count), _NEVER, device=slashes.device)
    stops, used = starts.clone(), torch.zeros(shape, dtype=torch.long, device=slashes.device)
    start, stop = torch.full(shape, -1, device=slashes.device), torch.full(shape, -1, device=slashes.device)
    for index in range(count):
        slash = slashes[:, :, index, None]
        reach = (end - slash).clamp(min=size)
        met = (slash < end) & (causal | (start < 0) | (slash >= begin))
        fresh = met & ((start < 0) | (reach > stop + size))
        grown = met & ~fresh & (reach > stop)
        used += fresh
        start, stop = torch.where(fresh, reach - size, start), torch.where(fresh, reach, stop + size * grown)
        place = (used - 1).clamp(min=0).unsqueeze(-1)
        for spans, bound in ((starts, start), (stops, stop)):
            spans.scatter_(-1, place, torch.where(used > 0, bound, _NEVER).unsqueeze(-1))
    return starts, stops


def _blocks_of(
    starts: torch.Tensor, stops: torch.Tensor, keys: torch.Tensor, size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Where the blocks of ``size`` keys begin that make up spans, cut off at ``keys``; and how many there are."""
    stops = torch.minimum(stops, keys.unsqueeze(-1))
    each = ((stops - starts).clamp(min=0) + size - 1) // size
    through = each.cumsum(-1)
    place = torch.arange(starts.shape[-1], device=starts.device).expand_as(starts).contiguous()
    span = torch.searchsorted(through, place, right=True).clamp(max=starts.shape[-1] - 1)
    offsets = starts.gather(-1, span) + (place - (through - each).gather(-1, span)) * size
    return offsets, through[..., -1]


def convert_vertical_slash_indexes_plain(
    block_count: torch.Tensor,
    block_offset: torch.Tensor,
    column_count: torch.Tensor,
    column_index: torch.Tensor,
    q_seqlens: torch.Tensor,
    kv_seqlens: torch.Tensor,
    vertical_indexes: torch.Tensor,
    slash_indexes: torch.Tensor,
    context_size: int,
    block_size_M: int,
    block_size_N: int,
    causal: bool,
) -> None:
    """``convert_vertical_slash_indexes`` for all rows at once."""
    expected = convert_vertical_slash_indexes(
        block_count,
        block_offset,
        column_count,
        column_index,
        q_seqlens,
        kv_seqlens,
        vertical_indexes,
        slash_indexes,
        context_size,
        block_size_M,
        block_size_N,
        causal,
    )
    block_count.copy_(expected["block_count"].value)
    block_offset.copy_(expected["block_offset"].value)
    column_count.copy_(expected["column_count"].value)
    column_index.copy_(expected["column_index"].value)


def prepare_vertical_slash(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Lengths of queries and keys, columns in ascending and diagonals in descending order, both without repeats.

    The first sequence has the longest queries, the others random ones where the case is ``ragged``. Keys are longer by
    ``extra`` and more than there are columns and diagonals. The last diagonal is 0, the one that ends at the query.
    """
    device = generator.device
    longest, extra = int(variables["context"]), int(variables["extra"])
    columns, diagonals = tensors["vertical_indexes"], tensors["slash_indexes"]
    queries = torch.full((columns.shape[0],), longest, device=device)
    if variables["ragged"]:
        queries = torch.randint(1, longest + 1, queries.shape, generator=generator, device=device)
        queries[0] = longest
    keys = (queries + extra).clamp(min=max(columns.shape[-1], diagonals.shape[-1]) + 1)
    tensors["q_seqlens"].copy_(queries)
    tensors["kv_seqlens"].copy_(keys)
    for index, (query, key) in enumerate(zip(queries.tolist(), keys.tolist(), strict=True)):
        scores = torch.rand((columns.shape[1], key), generator=generator, device=device)
        columns[index] = scores.argsort(-1)[:, : columns.shape[-1]].sort(-1).values
        reach = key - 1 if variables["causal"] else key + query - 1
        scores = torch.rand((columns.shape[1], reach), generator=generator, device=device)
        chosen = 1 + scores.argsort(-1)[:, : diagonals.shape[-1] - 1].sort(-1, descending=True).values
        diagonals[index, :, :-1], diagonals[index, :, -1] = chosen, 0
