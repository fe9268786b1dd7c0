"""References of vLLM's key-value cache problems: writes, gathers, copies of blocks, attention over partitions.

The reference functions take their entry's parameters by name, floating tensors as float64. ``prepare_*`` finish drawn
inputs in place. ``*_plain`` have the entries' own signatures and dtypes and are timed where vLLM does not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.vllm import (
    coded,
    fill_tables,
    fill_with_nan,
)

Expectations = dict[str, Expected]
_POISON_BYTE = 0xFF


# --- writes ---


def reshape_and_cache_flash(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str,
    k_scale: torch.Tensor,
    v_scale: torch.Tensor,
) -> Expectations:
    """The caches with token t, divided by the scale for fp8, at slot_mapping[t]; negative slots are skipped."""
    if kv_cache_dtype == "auto":
        k_scale = v_scale = torch.ones_like(k_scale)
    return {
        "key_cache": Expected(_stored(key / k_scale, key_cache, slot_mapping)),
        "value_cache": Expected(_stored(value / v_scale, value_cache, slot_mapping)),
    }


def reshape_and_cache_flash_plain(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str,
    k_scale: torch.Tensor,
    v_scale: torch.Tensor,
) -> None:
    """``reshape_and_cache_flash`` by indexed assignment."""
    for rows, cache, scale in ((key, key_cache, k_scale), (value, value_cache, v_scale)):
        _store(_coded(rows, kv_cache_dtype, scale), cache, slot_mapping)


def concat_and_cache_mla(
    kv_c: torch.Tensor,
    k_pe: torch.Tensor,
    kv_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str,
    scale: torch.Tensor,
) -> Expectations:
    """The cache with kv_c[t] and k_pe[t] side by side, divided by the scale for fp8, at slot_mapping[t]."""
    rows = torch.cat((kv_c, k_pe), dim=-1)
    if kv_cache_dtype != "auto":
        rows = rows / scale
    return {"kv_cache": Expected(_stored(rows, kv_cache, slot_mapping))}


def concat_and_cache_mla_plain(
    kv_c: torch.Tensor,
    k_pe: torch.Tensor,
    kv_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str,
    scale: torch.Tensor,
) -> None:
    """``concat_and_cache_mla`` by indexed assignment."""
    _store(_coded(torch.cat((kv_c, k_pe), dim=-1), kv_cache_dtype, scale), kv_cache, slot_mapping)


def _coded(rows: torch.Tensor, kv_cache_dtype: str, scale: torch.Tensor) -> torch.Tensor:
    """Rows in the cache's dtype."""
    if kv_cache_dtype == "auto":
        return rows
    return coded(rows, scale)


def _stored(rows: torch.Tensor, cache: torch.Tensor, slot_mapping: torch.Tensor) -> torch.Tensor:
    cache = cache.clone()
    _store(rows, cache, slot_mapping)
    return cache


def _store(rows: torch.Tensor, cache: torch.Tensor, slot_mapping: torch.Tensor) -> None:
    """rows: (tokens or more, ...); cache: (blocks, block_size, ...). Rows past the mapping's end are padding."""
    kept = slot_mapping >= 0
    slots, block_size = slot_mapping[kept], cache.shape[1]
    bits = _as_bits(cache)
    bits[slots // block_size, slots % block_size] = _as_bits(rows[: len(slot_mapping)][kept])


def _as_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Bytes for a dtype of 8 bits, for which torch has no indexed assignment."""
    return tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor


# --- gathers ---


def cp_gather_cache(
    src_cache: torch.Tensor,
    dst: torch.Tensor,
    block_table: torch.Tensor,
    cu_seq_lens: torch.Tensor,
    seq_starts: torch.Tensor | None,
    **_: Any,
) -> Expectations:
    """Row cu_seq_lens[s] + t of dst is sequence s's token t, counted from seq_starts[s]."""
    blocks, places = _places(block_table, cu_seq_lens, seq_starts, src_cache.shape[1])
    return {"dst": Expected(_on_top(src_cache[blocks, places], dst))}


def cp_gather_cache_plain(
    src_cache: torch.Tensor,
    dst: torch.Tensor,
    block_table: torch.Tensor,
    cu_seq_lens: torch.Tensor,
    batch_size: int,
    seq_starts: torch.Tensor | None = None,
) -> None:
    """``cp_gather_cache`` by indexing."""
    blocks, places = _places(block_table, cu_seq_lens, seq_starts, src_cache.shape[1])
    dst[: len(blocks)] = src_cache[blocks, places]


def gather_and_maybe_dequant_cache(
    src_cache: torch.Tensor,
    dst: torch.Tensor,
    block_table: torch.Tensor,
    cu_seq_lens: torch.Tensor,
    kv_cache_dtype: str,
    scale: torch.Tensor,
    seq_starts: torch.Tensor | None,
    **_: Any,
) -> Expectations:
    """``cp_gather_cache``, times the scale where the cache is fp8."""
    blocks, places = _places(block_table, cu_seq_lens, seq_starts, src_cache.shape[1])
    rows = src_cache[blocks, places]
    return {"dst": Expected(_on_top(rows if kv_cache_dtype == "auto" else rows * scale, dst))}


def gather_and_maybe_dequant_cache_plain(
    src_cache: torch.Tensor,
    dst: torch.Tensor,
    block_table: torch.Tensor,
    cu_seq_lens: torch.Tensor,
    token_to_seq: torch.Tensor,
    num_tokens: int,
    kv_cache_dtype: str,
    scale: torch.Tensor,
    seq_starts: torch.Tensor | None = None,
) -> None:
    """``gather_and_maybe_dequant_cache`` by indexing."""
    sequence = token_to_seq[:num_tokens].long()
    position = torch.arange(num_tokens, device=dst.device) - cu_seq_lens.long()[sequence]
    if seq_starts is not None:
        position = position + seq_starts.long()[sequence]
    block_size = src_cache.shape[1]
    blocks = block_table.long()[sequence, position // block_size]
    rows = _as_bits(src_cache)[blocks, position % block_size].view(src_cache.dtype)
    dst[:num_tokens] = rows if kv_cache_dtype == "auto" else (rows.float() * scale).to(dst.dtype)


def cp_gather_indexer_k_quant_cache(
    kv_cache: torch.Tensor,
    dst_k: torch.Tensor,
    dst_scale: torch.Tensor,
    block_table: torch.Tensor,
    cu_seq_lens: torch.Tensor,
) -> Expectations:
    """Codes and scales of each token, which lie apart in its block: first all codes, behind them all scales."""
    (blocks, places), block_size = _places(block_table, cu_seq_lens, None, kv_cache.shape[1]), kv_cache.shape[1]
    flat = kv_cache.flatten(1)
    codes = flat[:, : block_size * dst_k.shape[1]].reshape(-1, block_size, dst_k.shape[1])
    scales = flat[:, block_size * dst_k.shape[1] :].reshape(-1, block_size, dst_scale.shape[1])
    return {
        "dst_k": Expected(_on_top(codes[blocks, places], dst_k)),
        "dst_scale": Expected(_on_top(scales[blocks, places], dst_scale)),
    }


def cp_gather_indexer_k_quant_cache_plain(
    kv_cache: torch.Tensor,
    dst_k: torch.Tensor,
    dst_scale: torch.Tensor,
    block_table: torch.Tensor,
    cu_seq_lens: torch.Tensor,
) -> None:
    """``cp_gather_indexer_k_quant_cache`` by indexing."""
    gathered = cp_gather_indexer_k_quant_cache(kv_cache, dst_k, dst_scale, block_table, cu_seq_lens)
    dst_k.copy_(gathered["dst_k"].value)
    dst_scale.copy_(gathered["dst_scale"].value)


def _places(
    block_table: torch.Tensor, cu_seq_lens: torch.Tensor, seq_starts: torch.Tensor | None, block_size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Block and place within it of every gathered token, int64 (cu_seq_lens[-1],) each."""
    ends = cu_seq_lens.long()
    lengths = ends[1:] - ends[:-1]
    sequence = torch.repeat_interleave(torch.arange(len(lengths), device=ends.device), lengths)
    position = torch.arange(len(sequence), device=ends.device) - ends[sequence]
    if seq_starts is not None:
        position = position + seq_starts.long()[sequence]
    return block_table.long()[sequence, position // block_size], position % block_size


def _on_top(rows: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    """dst with its first rows replaced; the rest is no token's."""
    result = dst.clone()
    result[: len(rows)] = rows.to(result.dtype)
    return result


def prepare_gather(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Lengths, starts, block table and poison of a gather from a paged cache.

    ``lengths``: tokens to gather of each sequence; ``starts``: how many of it come before them, () for none. Block
    tables name distinct blocks in random order, and blocks of poison where nothing is gathered. Every slot that is
    not gathered is poison: NaN, which in bytes is ones.
    """
    cache = tensors["kv_cache" if "kv_cache" in tensors else "src_cache"]
    lengths = torch.tensor(variables["lengths"], dtype=torch.int32, device=generator.device)
    starts = torch.tensor(variables["starts"] or (0,) * len(lengths), dtype=torch.int32, device=generator.device)
    ends = tensors["cu_seq_lens"]
    ends[:1] = 0
    ends[1:] = lengths.cumsum(0)
    if tensors.get("seq_starts") is not None:
        tensors["seq_starts"].copy_(starts)
    if "token_to_seq" in tensors:
        sequence = torch.repeat_interleave(torch.arange(len(lengths), device=generator.device), lengths)
        tensors["token_to_seq"].fill_(0)
        tensors["token_to_seq"][: len(sequence)] = sequence.to(torch.int32)
    live = fill_tables(tensors["block_table"], starts, starts + lengths, cache.shape[:2], generator)
    if "dst_scale" in tensors:
        _poison_indexer(cache, live, tensors["dst_k"].shape[1])
    else:
        _poison(cache, live)


def _poison(cache: torch.Tensor, live: torch.Tensor) -> None:
    """NaN, or ones in bytes, outside of the live slots of (blocks, block_size, ...)."""
    dead = ~live.reshape(*live.shape, *(1,) * (cache.dim() - 2))
    fill_with_nan(cache, dead)


def _poison_indexer(cache: torch.Tensor, live: torch.Tensor, head_dim: int) -> None:
    """Bytes of ones outside of the live slots' codes and scales."""
    scale_bytes = cache.shape[2] - head_dim
    dead = torch.cat((~live.repeat_interleave(head_dim, 1), ~live.repeat_interleave(scale_bytes, 1)), dim=1)
    cache.masked_fill_(dead.reshape(cache.shape), _POISON_BYTE)


# --- whole blocks ---


def swap_blocks(src: torch.Tensor, dst: torch.Tensor, block_mapping: torch.Tensor, **_: Any) -> Expectations:
    """dst with block_mapping[i, 1] replaced by src's block_mapping[i, 0]."""
    dst = dst.clone()
    dst[block_mapping[:, 1].to(dst.device)] = src[block_mapping[:, 0].to(dst.device)]
    return {"dst": Expected(dst)}


def swap_blocks_plain(
    src: torch.Tensor, dst: torch.Tensor, block_size_in_bytes: int, block_mapping: torch.Tensor
) -> None:
    """``swap_blocks`` by indexed assignment."""
    dst[block_mapping[:, 1].to(dst.device)] = src[block_mapping[:, 0].to(dst.device)]


def copy_blocks(
    key_caches: list[torch.Tensor], value_caches: list[torch.Tensor], block_mapping: torch.Tensor
) -> Expectations:
    """Each layer's caches with block block_mapping[i, 0] copied to block_mapping[i, 1]."""
    return _copied("key_caches", key_caches, block_mapping) | _copied("value_caches", value_caches, block_mapping)


def copy_blocks_plain(
    key_caches: list[torch.Tensor], value_caches: list[torch.Tensor], block_mapping: torch.Tensor
) -> None:
    """``copy_blocks`` by indexed assignment."""
    for cache in (*key_caches, *value_caches):
        cache[block_mapping[:, 1]] = cache[block_mapping[:, 0]]


def copy_blocks_mla(kv_caches: list[torch.Tensor], block_mapping: torch.Tensor) -> Expectations:
    """Each layer's cache with block block_mapping[i, 0] copied to block_mapping[i, 1]."""
    return _copied("kv_caches", kv_caches, block_mapping)


def copy_blocks_mla_plain(kv_caches: list[torch.Tensor], block_mapping: torch.Tensor) -> None:
    """``copy_blocks_mla`` by indexed assignment."""
    copy_blocks_plain(kv_caches, [], block_mapping)


def _copied(name: str, caches: list[torch.Tensor], block_mapping: torch.Tensor) -> Expectations:
    expected = {}
    for n, cache in enumerate(caches):
        copied = cache.clone()
        copied[block_mapping[:, 1]] = cache[block_mapping[:, 0]]
        expected[f"{name}[{n}]"] = Expected(copied)
    return expected


def prepare_mapping(tensors: Mapping[str, Any], variables: Mapping[str, Any], generator: torch.Generator) -> None:
    """Pairs of blocks: targets are distinct; within one cache none is a source, and a source may have several."""
    mapping = tensors["block_mapping"]
    pairs, device = mapping.shape[0], generator.device
    if "src" in tensors:
        sources = torch.randint(0, tensors["src"].shape[0], (pairs,), generator=generator, device=device)
        targets = torch.randperm(tensors["dst"].shape[0], generator=generator, device=device)[:pairs]
    else:
        order = torch.randperm(int(variables["blocks"]), generator=generator, device=device)
        targets, others = order[:pairs], order[pairs:]
        sources = others[torch.randint(0, len(others), (pairs,), generator=generator, device=device)]
    mapping.copy_(torch.stack((sources, targets), dim=1))
