"""References, prepared inputs and fallbacks of vLLM problems about rows: norms, quantisation, shuffles, scans, indexes.

The reference functions take their entry's parameters by name, floating tensors as float64. ``prepare_*`` finish drawn
inputs in place. ``*_fallback`` have the entries' own signatures and dtypes and are timed where vLLM does not run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected

Expectations = dict[str, Expected]

FP8_MAX: Final = 448.0
"""Largest finite number of float8_e4m3fn."""
SMALLEST_SCALES: Final = {"int8": 2.0**-23, "fp8": 1 / (FP8_MAX * 512)}
"""What vLLM's fused norms and its fp8 scales per token never go below."""


# --- rows as they are ---


def fused_add_rms_norm(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> Expectations:
    """residual += input; input = residual / sqrt(mean(residual²) + epsilon) * weight."""
    total = input + residual
    return {"input": Expected(_normalised(total, epsilon) * weight), "residual": Expected(total)}


def fused_add_rms_norm_fallback(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> None:
    """``fused_add_rms_norm`` in float32, rounded once per output."""
    residual.add_(input)
    input.copy_(_normalised(residual.float(), epsilon) * weight)


def _normalised(rows: torch.Tensor, epsilon: float) -> torch.Tensor:
    return rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + epsilon)


def shuffle_rows(input_tensor: torch.Tensor, dst2src_map: torch.Tensor, **_: Any) -> Expectations:
    """output_tensor[i] = input_tensor[dst2src_map[i]]."""
    return {"output_tensor": Expected(input_tensor[dst2src_map.long()])}


def shuffle_rows_fallback(input_tensor: torch.Tensor, dst2src_map: torch.Tensor, output_tensor: torch.Tensor) -> None:
    """``shuffle_rows`` by one gather."""
    torch.index_select(input_tensor, 0, dst2src_map, out=output_tensor)


def permute_cols(A: torch.Tensor, perm: torch.Tensor) -> torch.Tensor:
    """Column j of the result is column perm[j] of A."""
    return A[:, perm.long()]


def permute_cols_fallback(A: torch.Tensor, perm: torch.Tensor) -> torch.Tensor:
    """``permute_cols`` by one gather."""
    return torch.index_select(A, 1, perm)


def apply_repetition_penalties(
    logits: torch.Tensor,
    prompt_mask: torch.Tensor,
    output_mask: torch.Tensor,
    repetition_penalties: torch.Tensor,
) -> Expectations:
    """Logits of tokens seen in prompt or output: divided by their row's penalty where positive, else multiplied."""
    penalty = repetition_penalties.unsqueeze(-1)
    penalised = torch.where(logits > 0, logits / penalty, logits * penalty)
    return {"logits": Expected(torch.where(prompt_mask | output_mask, penalised, logits))}


def apply_repetition_penalties_fallback(
    logits: torch.Tensor,
    prompt_mask: torch.Tensor,
    output_mask: torch.Tensor,
    repetition_penalties: torch.Tensor,
) -> None:
    """``apply_repetition_penalties`` in the logits' dtype."""
    penalty = repetition_penalties.unsqueeze(-1)
    penalised = torch.where(logits > 0, logits / penalty, logits * penalty)
    logits.copy_(torch.where(prompt_mask | output_mask, penalised, logits))


def hadacore_transform(x: torch.Tensor, inplace: bool) -> Expected:
    """Rows times the Hadamard matrix of Sylvester's order, over the root of their length.

    The scale of an error is the row's root mean square: kernels round between the steps of the transform.
    """
    return Expected(_hadamard(x), x.square().mean(-1, keepdim=True).sqrt().expand_as(x))


def hadacore_transform_fallback(x: torch.Tensor, inplace: bool = True) -> torch.Tensor:
    """``hadacore_transform`` by butterflies in float32."""
    return x.copy_(_hadamard(x.float()))


def _hadamard(rows: torch.Tensor) -> torch.Tensor:
    size, half, mixed = rows.shape[-1], 1, rows
    while half < size:
        first, second = mixed.reshape(*rows.shape[:-1], -1, 2, half).unbind(-2)
        mixed = torch.stack((first + second, first - second), -2)
        half *= 2
    return mixed.reshape(rows.shape) / math.sqrt(size)


# --- codes ---


def convert_fp8_quantize(src_cache: torch.Tensor, scale: float, **_: Any) -> Expectations:
    """The real numbers src / scale of which the codes are made."""
    return {"dst_cache": Expected(src_cache / scale)}


def convert_fp8_dequantize(src_cache: torch.Tensor, scale: float, **_: Any) -> Expectations:
    """What the codes stand for, times scale."""
    return {"dst_cache": Expected(src_cache * scale)}


def convert_fp8_fallback(dst_cache: torch.Tensor, src_cache: torch.Tensor, scale: float, kv_cache_dtype: str) -> None:
    """Both directions of ``convert_fp8`` in float32."""
    if dst_cache.dtype == torch.float8_e4m3fn:
        dst_cache.copy_((src_cache.float() / scale).clamp(-FP8_MAX, FP8_MAX))
    else:
        dst_cache.copy_(src_cache.float() * scale)


def prepare_codes(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Every fp8 code in turn, NaN among them, where the case's values are ``codes``."""
    if variables["values"] == "codes":
        codes = tensors["src_cache"].view(torch.uint8)
        codes.copy_((torch.arange(codes.numel(), device=codes.device) % 256).reshape(codes.shape))


def static_scaled_int8_quant(
    input: torch.Tensor, scale: torch.Tensor, azp: torch.Tensor | None, **_: Any
) -> Expectations:
    """The real numbers input / scale (+ azp)."""
    return {"result": _shifted(input / scale, azp)}


def static_scaled_int8_quant_fallback(
    result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor, azp: torch.Tensor | None
) -> None:
    """``static_scaled_int8_quant`` in float32."""
    result.copy_(_int8(input.float() / scale, azp))


def dynamic_scaled_int8_quant(input: torch.Tensor, azp: torch.Tensor | None, **_: Any) -> Expectations:
    """Each row's scale, its zero point where one is asked for, and the real numbers input / scale (+ azp)."""
    if azp is None:
        scale = input.abs().amax(-1, keepdim=True) / 127
        return {"result": Expected(_over(input, scale)), "scale": Expected(scale)}
    low, high = input.aminmax(dim=-1, keepdim=True)
    scale = (high - low) / 255
    zero = torch.round(-128 - low / scale)
    return {"result": _shifted(input / scale, zero), "scale": Expected(scale), "azp": Expected(zero.to(torch.int32))}


def dynamic_scaled_int8_quant_fallback(
    result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor, azp: torch.Tensor | None
) -> None:
    """``dynamic_scaled_int8_quant`` in float32."""
    rows = input.float()
    if azp is None:
        scale.copy_(rows.abs().amax(-1, keepdim=True) / 127)
        result.copy_(_int8(_over(rows, scale), None))
        return
    low, high = rows.aminmax(dim=-1, keepdim=True)
    scale.copy_((high - low) / 255)
    azp.copy_(torch.round(-128 - low / scale))
    result.copy_(_int8(rows / scale, azp))


def prepare_int8_rows(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Clear a row where the case says ``zero_row``; with zero points move the largest element of rows that would tie.

    A zero point that lies halfway between two integers, or nearly so, is one or the other by a rounding error.
    """
    rows = tensors["input"]
    prepare_zero_row(tensors, variables, generator)
    for _ in range(8 if variables["asymmetric"] else 0):
        wide = rows.double()
        low, high = wide.aminmax(dim=-1, keepdim=True)
        zero = -128 - 255 * low / (high - low)
        tied = ((zero - zero.floor()) - 0.5).abs() < 2e-3
        moved = torch.where(tied, high + 0.0625 * (high - low), high)
        rows.scatter_(-1, wide.argmax(-1, keepdim=True), moved.to(rows.dtype))


def prepare_zero_row(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Clear the middle row of the input where the case says ``zero_row``."""
    if variables["zero_row"]:
        tensors["input"][tensors["input"].shape[0] // 2] = 0


def _over(rows: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """rows / scale; 0 where the scale is 0."""
    return torch.where(scale == 0, 0.0, rows / scale)


def _shifted(codes: torch.Tensor, zero: torch.Tensor | None) -> Expected:
    """Codes with a zero point; their error scale is that of both terms."""
    return Expected(codes) if zero is None else Expected(codes + zero, codes.abs() + zero.abs())


def _int8(codes: torch.Tensor, zero: torch.Tensor | None) -> torch.Tensor:
    rounded = codes.round() if zero is None else codes.round() + zero
    return rounded.clamp(-128, 127)


def static_scaled_fp8_quant(input: torch.Tensor, scale: torch.Tensor, **_: Any) -> Expectations:
    """The real numbers input / scale with one scale per tensor, row, column or rectangle."""
    return {"result": Expected(input / _spread(scale, input.shape))}


def static_scaled_fp8_quant_fallback(result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor) -> None:
    """``static_scaled_fp8_quant`` in float32."""
    result.copy_((input.float() / _spread(scale, input.shape)).clamp(-FP8_MAX, FP8_MAX))


def _spread(scale: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """A scale per element, from one per rectangle; scale: (1,) or (rows / height, columns / width)."""
    if scale.dim() == 1:
        return scale
    rows, columns = shape[0] // scale.shape[0], shape[1] // scale.shape[1]
    return scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)


def dynamic_scaled_fp8_quant(input: torch.Tensor, **_: Any) -> Expectations:
    """scale = max |input| / 448 and the real numbers input / scale."""
    scale = input.abs().amax() / FP8_MAX
    return {"result": Expected(input / scale), "scale": Expected(scale.reshape(1))}


def dynamic_scaled_fp8_quant_fallback(result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor) -> None:
    """``dynamic_scaled_fp8_quant`` in float32."""
    scale.copy_(input.abs().amax().float() / FP8_MAX)
    result.copy_((input.float() / scale).clamp(-FP8_MAX, FP8_MAX))


def dynamic_per_token_scaled_fp8_quant(input: torch.Tensor, scale_ub: torch.Tensor | None, **_: Any) -> Expectations:
    """Per row scale = max(min(max |row|, scale_ub) / 448, 1 / (448 * 512)), and the real numbers input / scale."""
    scale = _token_scale(input.abs().amax(-1, keepdim=True), scale_ub, "fp8")
    return {"result": Expected(input / scale), "scale": Expected(scale)}


def dynamic_per_token_scaled_fp8_quant_fallback(
    result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor, scale_ub: torch.Tensor | None
) -> None:
    """``dynamic_per_token_scaled_fp8_quant`` in float32."""
    scale.copy_(_token_scale(input.abs().amax(-1, keepdim=True).float(), scale_ub, "fp8"))
    result.copy_((input.float() / scale).clamp(-FP8_MAX, FP8_MAX))


def _token_scale(largest: torch.Tensor, scale_ub: torch.Tensor | None, codes: str) -> torch.Tensor:
    """The scale of what is at most ``largest``; codes: int8 or fp8."""
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub)
    return (largest / (127 if codes == "int8" else FP8_MAX)).clamp(min=SMALLEST_SCALES[codes])


def rms_norm_dynamic_per_token_quant(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
    **_: Any,
) -> Expectations:
    """The norm of input (+ residual) times weight as codes, one scale per row."""
    return _norm_quant(result, input, weight, epsilon, scale_ub, residual, input.shape[-1])


def rms_norm_per_block_quant(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
    group_size: int,
    **_: Any,
) -> Expectations:
    """The norm of input (+ residual) times weight as codes, one scale per row and ``group_size`` columns."""
    return _norm_quant(result, input, weight, epsilon, scale_ub, residual, group_size)


def _norm_quant(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
    group: int,
) -> Expectations:
    total = input if residual is None else input + residual
    groups = _split(_normalised(total, epsilon) * weight, group)
    # fp8 arrives as float64, int8 as it is.
    codes = "fp8" if result.is_floating_point() else "int8"
    scale = _token_scale(groups.abs().amax(-1), scale_ub, codes)
    expected = {"result": Expected((groups / scale.unsqueeze(-1)).flatten(-2)), "scale": Expected(scale)}
    return expected if residual is None else expected | {"residual": Expected(total)}


def rms_norm_dynamic_per_token_quant_fallback(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
) -> None:
    """``rms_norm_dynamic_per_token_quant`` in float32."""
    _norm_quant_fallback(result, input, weight, scale, epsilon, scale_ub, residual, input.shape[-1])


def rms_norm_per_block_quant_fallback(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
    group_size: int,
    is_scale_transposed: bool,
) -> None:
    """``rms_norm_per_block_quant`` in float32."""
    _norm_quant_fallback(result, input, weight, scale, epsilon, scale_ub, residual, group_size)


def _norm_quant_fallback(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
    group: int,
) -> None:
    rows = input.float()
    if residual is not None:
        rows = rows + residual
        residual.copy_(rows)
    groups = _split(_normalised(rows, epsilon) * weight, group)
    scale.copy_(_token_scale(groups.abs().amax(-1), scale_ub, "int8" if result.dtype == torch.int8 else "fp8"))
    codes = (groups / scale.unsqueeze(-1)).flatten(-2)
    result.copy_(_int8(codes, None) if result.dtype == torch.int8 else codes.clamp(-FP8_MAX, FP8_MAX))


# --- heads ---


def _split(rows: torch.Tensor, size: int) -> torch.Tensor:
    """The last dimension as (parts, size)."""
    return rows.reshape(*rows.shape[:-1], -1, size)


def fused_qk_norm_rope(
    qkv: torch.Tensor,
    num_heads_q: int,
    num_heads_k: int,
    num_heads_v: int,
    head_dim: int,
    eps: float,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
    position_ids: torch.Tensor,
) -> Expectations:
    """Each query and key head normalised, weighted and then rotated; value heads as they are.

    The error scale of a rotated element is the sum of its two products' sizes.
    """
    heads = _split(qkv, head_dim)
    weights = torch.stack([q_weight] * num_heads_q + [k_weight] * num_heads_k)
    normed = _normalised(heads[:, : num_heads_q + num_heads_k], eps) * weights
    angles = cos_sin_cache[position_ids].unsqueeze(1)
    rest = heads[:, num_heads_q + num_heads_k :]
    value = torch.cat((_rotated(normed, angles, is_neox, -1.0), rest), 1).flatten(1)
    scale = torch.cat((_rotated(normed.abs(), angles.abs(), is_neox, 1.0), rest.abs()), 1).flatten(1)
    return {"qkv": Expected(value, scale)}


def fused_qk_norm_rope_fallback(
    qkv: torch.Tensor,
    num_heads_q: int,
    num_heads_k: int,
    num_heads_v: int,
    head_dim: int,
    eps: float,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
    position_ids: torch.Tensor,
) -> None:
    """``fused_qk_norm_rope`` in float32, rounded once."""
    heads = _split(qkv, head_dim)[:, : num_heads_q + num_heads_k]
    weights = torch.stack([q_weight] * num_heads_q + [k_weight] * num_heads_k)
    normed = _normalised(heads.float(), eps) * weights
    heads.copy_(_rotated(normed, cos_sin_cache[position_ids].float().unsqueeze(1), is_neox, -1.0))


def _rotated(heads: torch.Tensor, angles: torch.Tensor, is_neox: bool, minus: float) -> torch.Tensor:
    """heads: (tokens, heads, head_dim); angles: (tokens, 1, rotary_dim), the cosines first."""
    half = angles.shape[-1] // 2
    cos, sin = angles[..., :half], angles[..., half:]
    first, second = (
        (slice(0, half), slice(half, 2 * half)) if is_neox else (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
    )
    x, y = heads[..., first], heads[..., second]
    rotated = heads.clone()
    rotated[..., first] = x * cos + minus * (y * sin)
    rotated[..., second] = y * cos + x * sin
    return rotated


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
"""Past the end of every sequence."""


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


def convert_vertical_slash_indexes_fallback(
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
