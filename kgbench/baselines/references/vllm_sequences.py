"""References of vLLM problems about whole sequences: the indexes of sparse attention.

The reference functions take their entry's parameters by name, floating tensors as float64. ``prepare_*`` finish drawn
inputs in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected

Expectations = dict[str, Expected]


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
    reach = keys - 1 if variables["causal"] else keys + queries - 1
    columns.copy_(_distinct(columns.shape, keys, generator).sort(-1).values)
    wanted = (*diagonals.shape[:-1], diagonals.shape[-1] - 1)
    diagonals[..., :-1] = 1 + _distinct(wanted, reach, generator).sort(-1, descending=True).values
    diagonals[..., -1] = 0


def _distinct(shape: Sequence[int], limits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """int64 (batch, heads, count): in each row different numbers from 0 to below its batch's limit."""
    longest = int(limits.max())
    scores = torch.rand((*shape[:2], longest), generator=generator, device=generator.device)
    scores.masked_fill_(torch.arange(longest, device=generator.device) >= limits[:, None, None], 2.0)
    return scores.argsort(-1)[..., : shape[-1]]
