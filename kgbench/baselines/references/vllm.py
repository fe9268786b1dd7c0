"""References of vLLM problems, the structure their inputs need, and plain PyTorch fallbacks.

The reference functions take their entry's parameters by name, floating tensors as float64. ``prepare_*`` finish drawn
inputs in place. ``*_plain`` have the entries' own signatures and dtypes and are timed where vLLM does not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.aten import chained, finite

Expectations = dict[str, Expected]
FP8_LARGEST = 448.0
"""The largest number of float8_e4m3fn."""
MOST_GATHERED = 1 << 26
"""Elements of keys, in float64, that the sequences have together of which attention is computed at once."""


def rms_norm(input: torch.Tensor, weight: torch.Tensor, epsilon: float, **_: Any) -> Expectations:
    """out = input / sqrt(mean(input², last dimension) + epsilon) * weight; the limit is of 8 units of roundoff."""
    value = _normalised(input, epsilon) * weight
    return {"out": Expected(value, norm_scale(value, weight, input))}


def norm_scale(value: torch.Tensor, weight: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """What the limits of a normalised and weighted value are multiples of, in eighths of units of roundoff.

    vLLM rounds before it multiplies by the weight. Among float16's denormals that rounding does not shrink with the
    value: it is up to half their distance.
    """
    drawn, length = drawn_as(rows), rows.shape[-1]
    denormal = weight.abs() * (torch.finfo(drawn).tiny / 8)
    return finite(torch.maximum(value.abs() * (1 + mean_off(length, drawn) / 8), denormal))


def drawn_as(rows: torch.Tensor) -> torch.dtype:
    """The dtype that float64 rows had before: the narrowest that holds all their numbers."""
    numbers = rows.nan_to_num(0.0, 0.0, 0.0)
    held = (each for each in (torch.bfloat16, torch.float16) if torch.equal(numbers.to(each).to(rows.dtype), numbers))
    return next(held, torch.float32)


def mean_off(length: int, drawn: torch.dtype) -> float:
    """Units of roundoff by which the root of a row's mean square may be off if its squares are added one by one.

    Half of those of the sum of ``length`` squares. None where the rows have 16 bits: limits then count in units of
    these.
    """
    return chained(length) / 2 if drawn is torch.float32 else 0.0


def rms_norm_plain(out: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    """``rms_norm`` in float32 with one rounding to the output's dtype."""
    out.copy_(_normalised(input.float(), epsilon) * weight)


def _normalised(input: torch.Tensor, epsilon: float) -> torch.Tensor:
    return input * torch.rsqrt(input.square().mean(-1, keepdim=True) + epsilon)


def rotary_embedding(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor | None,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
) -> Expectations:
    """Pairs (x, y) of each head's first rot_dim elements become (x cos - y sin, y cos + x sin).

    The error scale of a rotated element is the sum of its two products' sizes; the others must stay as they are.
    """
    given = {"query": query, "key": key}
    return {
        name: Expected(
            _rotated(tensor, positions, head_size, cos_sin_cache, is_neox),
            _rotated(tensor.abs(), positions, head_size, cos_sin_cache.abs(), is_neox, minus=1.0),
        )
        for name, tensor in given.items()
        if tensor is not None
    }


def rotary_embedding_plain(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor | None,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
) -> None:
    """``rotary_embedding`` in the problem's own dtype."""
    query.copy_(_rotated(query, positions, head_size, cos_sin_cache, is_neox))
    if key is not None:
        key.copy_(_rotated(key, positions, head_size, cos_sin_cache, is_neox))


def _rotated(
    tensor: torch.Tensor,
    positions: torch.Tensor,
    head_size: int,
    cache: torch.Tensor,
    is_neox: bool,
    minus: float = -1.0,
) -> torch.Tensor:
    """tensor: (*positions.shape, heads * head_size) or (*positions.shape, heads, head_size); cache: (p, rot_dim)."""
    half = cache.shape[1] // 2
    heads = tensor.reshape(*positions.shape, -1, head_size)
    row = cache[positions].unsqueeze(-2)
    cos, sin = row[..., :half], row[..., half:]
    first, second = (
        (slice(0, half), slice(half, 2 * half)) if is_neox else (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
    )
    x, y = heads[..., first], heads[..., second]
    rotated = heads.clone()
    rotated[..., first] = x * cos + minus * (y * sin)
    rotated[..., second] = y * cos + x * sin
    return rotated.reshape(tensor.shape)


def reshape_and_cache(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str = "auto",
    k_scale: Any = 1.0,
    v_scale: Any = 1.0,
) -> Expectations:
    """The caches with token t stored at slot_mapping[t] = block * block_size + place; a negative slot is skipped.

    In fp8 what is stored is divided by its scale.
    """
    key_cache, value_cache = key_cache.clone(), value_cache.clone()
    if kv_cache_dtype != "auto":
        key, value = key / k_scale, value / v_scale
    _scatter(key, value, key_cache, value_cache, slot_mapping)
    return {"key_cache": Expected(key_cache), "value_cache": Expected(value_cache)}


def reshape_and_cache_plain(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str = "auto",
    k_scale: Any = 1.0,
    v_scale: Any = 1.0,
) -> None:
    """``reshape_and_cache`` by indexed assignment."""
    if kv_cache_dtype != "auto":
        key, value = coded(key, k_scale).view(torch.uint8), coded(value, v_scale).view(torch.uint8)
        key_cache, value_cache = key_cache.view(torch.uint8), value_cache.view(torch.uint8)
    _scatter(key, value, key_cache, value_cache, slot_mapping)


def _scatter(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> None:
    """key, value: (tokens, heads, head_size); the caches are laid out as ``prepare_paged`` says."""
    _, heads, groups, block_size, x = key_cache.shape
    kept = slot_mapping >= 0
    slots = slot_mapping[kept]
    blocks, places = slots // block_size, slots % block_size
    key_cache[blocks, :, :, places, :] = key[kept].reshape(-1, heads, groups, x)
    value_cache[blocks, :, :, places] = value[kept]


def coded(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """values / scale in float8_e4m3fn, saturated."""
    return (values.float() / scale).clamp(-FP8_LARGEST, FP8_LARGEST).to(torch.float8_e4m3fn)


def prepare_slots(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Give every ``skip_every``-th token, from the second on, slot -1: a padding token that must not be stored."""
    step = int(variables["skip_every"])
    if step:
        tensors["slot_mapping"][1::step] = -1


def paged_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    num_kv_heads: int,
    scale: float,
    block_tables: torch.Tensor,
    seq_lens: torch.Tensor,
    alibi_slopes: torch.Tensor | None,
    kv_cache_dtype: str = "auto",
    k_scale: Any = 1.0,
    v_scale: Any = 1.0,
    **_: Any,
) -> Expectations:
    """softmax(scale * q · K + alibi) V for one query token per sequence, over the keys its block table names.

    In fp8 what the caches hold counts times its scale.
    The error scale is sqrt(sum((p v)²)): kernels may round the probabilities to the cache's dtype.
    """
    values = torch.empty_like(query, memory_format=torch.contiguous_format)
    scales = torch.empty_like(values)
    for length in torch.unique(seq_lens).tolist():
        alike = (seq_lens == length).nonzero()[:, 0]
        for some in alike.split(max(1, MOST_GATHERED // (length * num_kv_heads * query.shape[-1]))):
            keys, cached_values = _gathered(key_cache, value_cache, block_tables[some], length)
            if kv_cache_dtype != "auto":
                keys, cached_values = keys * k_scale, cached_values * v_scale
            group = query[some].reshape(len(some), num_kv_heads, -1, query.shape[-1])
            logits = scale * group @ keys.mT
            if alibi_slopes is not None:
                distance = torch.arange(length, device=query.device) - (length - 1)
                logits = logits + alibi_slopes.reshape(num_kv_heads, -1, 1) * distance
            weights = torch.exp(logits - logits.amax(-1, keepdim=True))
            weights = weights / weights.sum(-1, keepdim=True)
            shape = (len(some), *query.shape[1:])
            values[some] = (weights @ cached_values).reshape(shape)
            scales[some] = (weights**2 @ cached_values**2).sqrt().reshape(shape)
    return {"out": Expected(values, finite(scales))}


def _gathered(
    key_cache: torch.Tensor, value_cache: torch.Tensor, tables: torch.Tensor, length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of sequences of one length, each (sequences, num_kv_heads, length, head_size), from live slots.

    tables: (sequences, columns).
    """
    block_size = value_cache.shape[-1]
    position = torch.arange(length, device=tables.device)
    blocks, places = tables.long()[:, position // block_size], position % block_size
    keys = key_cache[blocks, :, :, places, :].flatten(3)
    return keys.transpose(1, 2), value_cache[blocks, :, :, places].transpose(1, 2)


def paged_attention_plain(
    out: torch.Tensor,
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    num_kv_heads: int,
    scale: float,
    block_tables: torch.Tensor,
    seq_lens: torch.Tensor,
    block_size: int,
    max_seq_len: int,
    alibi_slopes: torch.Tensor | None,
    kv_cache_dtype: str = "auto",
    k_scale: Any = 1.0,
    v_scale: Any = 1.0,
    *_: Any,
) -> None:
    """``paged_attention`` over all sequences at once, masked and without a host sync; logits in float32."""
    sequences, heads, head_size = query.shape
    tables = block_tables.long()
    if kv_cache_dtype != "auto":
        key_cache = (key_cache.float() * k_scale).to(query.dtype)
        value_cache = (value_cache.float() * v_scale).to(query.dtype)
    keys = key_cache[tables].permute(0, 2, 1, 4, 3, 5).reshape(sequences, num_kv_heads, -1, head_size)
    values = value_cache[tables].permute(0, 2, 1, 4, 3).reshape(sequences, num_kv_heads, -1, head_size)
    position = torch.arange(keys.shape[2], device=query.device)
    live = (position < seq_lens[:, None])[:, None, :, None]
    keys, values = keys.masked_fill(~live, 0), values.masked_fill(~live, 0)
    group = query.reshape(sequences, num_kv_heads, -1, head_size)
    logits = scale * (group.float() @ keys.mT.float())
    if alibi_slopes is not None:
        distance = position - (seq_lens[:, None, None, None] - 1)
        logits = logits + alibi_slopes.reshape(num_kv_heads, -1, 1) * distance
    weights = logits.masked_fill(~live.mT, float("-inf")).softmax(-1).to(query.dtype)
    out.copy_((weights @ values).reshape(sequences, heads, head_size))


def prepare_paged(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Lengths, block tables and poison of a paged key-value cache.

    key_cache: (blocks, heads, head_size / x, block_size, x); value_cache: (blocks, heads, head_size, block_size).
    ``seq_lens``: the case's ``lengths`` where it has some; otherwise the first max_seq_len, the last 1 and random
    between when the case is ``ragged``, else evenly from max_seq_len down to half of it, so that the work is the same
    in every run. Block tables name distinct blocks in
    random order; entries past a sequence's end name blocks of poison. Every slot that no sequence owns is NaN.
    """
    tables, lengths = tensors["block_tables"], tensors["seq_lens"]
    value_cache = tensors["value_cache"]
    if variables.get("lengths"):
        lengths.copy_(torch.tensor(variables["lengths"]))
    else:
        lengths.copy_(_lengths(lengths.shape[0], int(variables["max_seq_len"]), bool(variables["ragged"]), generator))
    begins = torch.zeros_like(lengths)
    live = fill_tables(tables, begins, lengths, (value_cache.shape[0], value_cache.shape[-1]), generator)
    fill_with_nan(value_cache, ~live[:, None, None, :])
    fill_with_nan(tensors["key_cache"], ~live[:, None, None, :, None])


def fill_tables(
    tables: torch.Tensor,
    begins: torch.Tensor,
    ends: torch.Tensor,
    cache: Sequence[int],
    generator: torch.Generator,
) -> torch.Tensor:
    """Fill block tables, int32 (sequences, width); returns which slots are used, bool (blocks, block_size).

    Position p of a sequence, from its begin to its end, is at place p % block_size of block table[p // block_size].
    Blocks in use are distinct and in random order; other entries name blocks that nobody uses. ``cache``: (blocks,
    block_size).
    """
    blocks, block_size = cache
    order = torch.randperm(blocks, generator=generator, device=generator.device)
    column = torch.arange(tables.shape[1], device=generator.device)
    used = (column < (-(-ends // block_size))[:, None]) & (column >= (begins // block_size)[:, None])
    used &= (ends > begins)[:, None]
    count = int(used.sum())
    if count > blocks or (count == blocks and count < used.numel()):
        raise ValueError(f"{count} blocks are used, the cache has {blocks}: none is left for entries without use")
    table = order[torch.randint(min(count, blocks - 1), blocks, tables.shape, generator=generator, device=order.device)]
    table[used] = order[:count]
    tables.copy_(table)
    position = torch.arange(tables.shape[1] * block_size, device=generator.device)
    owned = (position >= begins[:, None]) & (position < ends[:, None])
    live = torch.zeros(blocks, block_size, dtype=torch.bool, device=generator.device)
    block_of = table[:, position // block_size]
    live[block_of[owned], (position % block_size).expand_as(owned)[owned]] = True
    return live


def fill_with_nan(cache: torch.Tensor, where: torch.Tensor) -> None:
    """NaN in a floating cache, in the types of 8 bits too, for which torch has no masked fill."""
    if cache.element_size() == 1:
        cache.view(torch.uint8).masked_fill_(where, 0xFF)
    else:
        cache.masked_fill_(where, float("nan"))


def _lengths(count: int, longest: int, ragged: bool, generator: torch.Generator) -> torch.Tensor:
    if not ragged:
        return longest - torch.arange(count) * (longest // 2) // max(count, 1)
    lengths = torch.randint(1, longest + 1, (count,), generator=generator, device=generator.device)
    lengths[:1] = longest
    if count > 1:
        lengths[-1] = 1
    return lengths
