"""References of vLLM's products with matrices in ggml's formats, their inputs' structure, and plain versions.

Conventions are those of ``vllm_quantized.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.packing import ggml
from kgbench.baselines.references.vllm_quantized import Tensors, Variables

HALF_FLOOR: Final = 2.0**-14
"""The smallest normal float16: below it the rounding of float16 arithmetic no longer shrinks."""
DEVIATIONS: Final = 6.0
"""Standard deviations of what quantising the activations may do to a product."""
HALF_UNIT: Final = 2.0**-11
"""Relative rounding error of float16."""
LIMIT_SHARE: Final = 2.0**-8
"""Share of its scale by which an element of a product may be off: ulps 4 of float16 arithmetic, see the problems'
tolerance."""


def ggml_dequantize(W: torch.Tensor, type: int, **_: Any) -> Expected:
    """The values of the blocks. The library computes them in float16, so that is what the error is scaled for."""
    scaled, added = ggml.parts(W, type)
    return Expected(scaled + added, scaled.abs() + added.abs() + HALF_FLOOR)


def ggml_dequantize_plain(W: torch.Tensor, type: int, m: int, n: int, dtype: torch.dtype | None) -> torch.Tensor:
    """``ggml_dequantize`` in float64, rounded once."""
    return ggml.dequantize(W, type).to(dtype or torch.float16)


def ggml_mul_mat(W: torch.Tensor, X: torch.Tensor, type: int, row: int) -> Expected:
    """X times the transposed matrix W, the activations as they are."""
    return _a8_product(X, W, type)


def ggml_mul_mat_plain(W: torch.Tensor, X: torch.Tensor, type: int, row: int) -> torch.Tensor:
    """``ggml_mul_mat_a8`` and ``ggml_mul_mat_vec_a8`` without quantising X in float32; some weights exceed float16."""
    return (X.float() @ ggml.dequantize(W, type).float().T).to(X.dtype)


def ggml_moe_a8(
    X: torch.Tensor,
    W: torch.Tensor,
    sorted_token_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    type: int,
    row: int,
    top_k: int,
    tokens: int,
    **_: Any,
) -> Expected:
    """Result id of the sorted ids is token id // top_k times the matrix of the expert of its block of ids."""
    chosen = _experts(sorted_token_ids, expert_ids, tokens * top_k)
    return _each_expert(X, W, chosen, type, top_k)


def ggml_moe_a8_vec(
    X: torch.Tensor, W: torch.Tensor, topk_ids: torch.Tensor, top_k: int, type: int, row: int, tokens: int
) -> Expected:
    """Result i is token i // top_k times the matrix of expert topk_ids.flatten()[i]."""
    return _each_expert(X, W, topk_ids.reshape(-1).long(), type, top_k)


def ggml_moe_a8_plain(
    X: torch.Tensor,
    W: torch.Tensor,
    sorted_token_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    num_tokens_post_padded: torch.Tensor,
    type: int,
    row: int,
    top_k: int,
    tokens: int,
) -> torch.Tensor:
    """``ggml_moe_a8`` without quantising X."""
    chosen = _experts(sorted_token_ids, expert_ids, tokens * top_k)
    return _moe_plain(X, W, chosen, type, top_k)


def ggml_moe_a8_vec_plain(
    X: torch.Tensor, W: torch.Tensor, topk_ids: torch.Tensor, top_k: int, type: int, row: int, tokens: int
) -> torch.Tensor:
    """``ggml_moe_a8_vec`` without quantising X."""
    return _moe_plain(X, W, topk_ids.reshape(-1).long(), type, top_k)


def _moe_plain(x: torch.Tensor, packed: torch.Tensor, chosen: torch.Tensor, number: int, top_k: int) -> torch.Tensor:
    matrices = ggml.dequantize(packed, number).float()
    tokens = torch.arange(chosen.numel(), device=x.device) // top_k
    out = x.new_zeros(chosen.numel(), packed.shape[1])
    for expert in range(packed.shape[0]):
        mine = (chosen == expert).nonzero()[:, 0]
        out[mine] = (x[tokens[mine]].float() @ matrices[expert].T).to(x.dtype)
    return out


def _experts(sorted_ids: torch.Tensor, expert_ids: torch.Tensor, count: int) -> torch.Tensor:
    """int64 (count,): the expert of every result, by the sorted ids in blocks of one expert each."""
    per_block = sorted_ids.numel() // expert_ids.numel()
    of_id = expert_ids.long().repeat_interleave(per_block)
    live = sorted_ids < count
    chosen = torch.zeros(count, dtype=torch.int64, device=sorted_ids.device)
    chosen[sorted_ids[live].long()] = of_id[live]
    return chosen


def _each_expert(x: torch.Tensor, packed: torch.Tensor, chosen: torch.Tensor, number: int, top_k: int) -> Expected:
    """x: (tokens, k); packed: (experts, rows, bytes); chosen: (results,), the expert of each."""
    tokens = torch.arange(chosen.numel(), device=x.device) // top_k
    value = torch.zeros(chosen.numel(), packed.shape[1], dtype=torch.float64, device=x.device)
    scale = torch.zeros_like(value)
    for expert in sorted(set(chosen.tolist())):
        mine = (chosen == expert).nonzero()[:, 0]
        result = _a8_product(x[tokens[mine]], packed[expert], number)
        assert result.magnitude is not None
        value[mine], scale[mine] = result.value, result.magnitude
    return Expected(value, scale)


def _a8_product(x: torch.Tensor, packed: torch.Tensor, number: int) -> Expected:
    """x times the transpose of a packed matrix: x: (batch, k), packed: uint8 (rows, bytes of k values).

    The value is the product with x as it is. The scale makes room for a kernel that rounds x to Q8_1 as vLLM's do,
    which of 32 activations each keeps d = max|x| / 127 and the sum s in float16 and the codes round(x / d):

    - a code is off by up to half a step, which is d / sqrt(12) in the root mean square, times the weight that it meets:
      of formats with minima that is the scaled code for one kernel of vLLM and the whole weight for another;
    - d and s are off by the rounding of float16, times what they meet: with the weight ``scaled + added`` the
      activations' codes meet ``scaled`` and s meets ``added``.

    DEVIATIONS times the root of the sum of their squares is allowed. It is 2 to 6 % of the root mean square of an
    output: codes of 7 bits or of float8 do not pass, float16 and better do.
    """
    scaled, added = ggml.parts(packed, number, unsigned=number in (2, 6))
    weights = scaled + added
    rows, batch = packed.shape[0], x.shape[0]
    blocks = x.reshape(batch, -1, 32)
    met = (
        (scaled.abs() if number in (3, 7) else torch.maximum(scaled.abs(), weights.abs()))
        .square()
        .reshape(rows, -1, 32)
        .sum(-1)
    )
    steps = blocks.abs().amax(-1) / 127
    quantised = (steps.square() / 12 + HALF_UNIT**2 * blocks.square().sum(-1)) @ met.T
    summed = blocks.sum(-1).square() @ added.reshape(rows, -1, 32).abs().amax(-1).square().T
    rounding = DEVIATIONS * (quantised + HALF_UNIT**2 * summed).sqrt() / LIMIT_SHARE
    return Expected(x @ weights.T, (x.square() @ weights.square().T).sqrt() + rounding)


def prepare_ggml(tensors: Tensors, variables: Variables, generator: torch.Generator) -> None:
    """Scales into the blocks of W, so that weights are about 0.03 to 0.1; the other bytes stay random.

    ``values: extreme``: scales of both signs, zeros, denormals and large ones. ``values: huge``: weights of up to 2e5,
    which float16 does not hold. ``values: uneven``: see ``_without_first_half``.
    """
    number, packed = int(variables["type"]), tensors["W"]
    form = ggml.FORMATS[number]
    blocks = packed.reshape(-1, form.nbytes)
    if blocks.data_ptr() != packed.data_ptr():
        raise ValueError("W is not contiguous")
    largest = (127 if form.nonlinear else 1 << (form.code_bits - 1)) * max(1, 1 << max(form.scale_bits - 1, 0))
    unit = torch.rand(2, blocks.shape[0], generator=generator, device=generator.device)
    halves = (0.25 + 0.75 * unit) * ((2e5 if variables["values"] == "huge" else 0.2) / largest)
    if form.nbytes in (20, 24):
        halves[1] = -unit[1] * halves[0] * (1 << form.code_bits)
    elif form.minima:
        halves[1] *= 1 << (form.code_bits - 2)
    halves = halves.clamp(-6e4, 6e4)
    if variables["values"] == "extreme":
        table = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0**-24, 3e-5, -0.37, 4.0 * min(1.0, 64 / largest)])
        halves = table.to(halves.device)[(unit * len(table)).long()]
    ggml.set_halves(blocks, number, *halves)
    if variables["values"] == "uneven":
        _without_first_half(tensors, number)


def _without_first_half(tensors: Tensors, number: int) -> None:
    """Weights of zero in the first half of the columns, and activations there that are 1e5 times as large.

    They count nothing. A kernel that adds something to codes and takes it off again, in float32 after the product, is
    left with the rounding of numbers that are much larger than the result.
    """
    x, packed = tensors["X"], tensors["W"]
    half = x.shape[-1] // 2
    x[..., :half] *= 1e5
    first = packed[..., : ggml.row_bytes(number, half)]
    if not first.numel():
        return
    block = ggml.unpack(first.contiguous(), number)
    none = {name: torch.zeros_like(found) for name in ("m", "minima") if (found := getattr(block, name)) is not None}
    empty = replace(block, codes=torch.full_like(block.codes, ggml.FORMATS[number].zero), **none)
    first.copy_(ggml.pack(empty, number).reshape(first.shape))


def prepare_ggml_moe(tensors: Tensors, variables: Variables, generator: torch.Generator) -> None:
    """``prepare_ggml``, and the ids sorted by expert in blocks of ``block``, padded with tokens * top_k.

    ``load``: ``even`` draws experts at random, ``one`` gives all to one expert, ``few`` leaves every second one empty.
    """
    prepare_ggml(tensors, variables, generator)
    results, experts = int(variables["tokens"]) * int(variables["top_k"]), int(variables["experts"])
    chosen = _choose(results, experts, int(variables["picks"]), str(variables["load"]), generator)
    if "topk_ids" in tensors:
        tensors["topk_ids"].copy_(chosen.reshape(tensors["topk_ids"].shape))
        return
    block, ids, of_block = int(variables["block"]), tensors["sorted_token_ids"], tensors["expert_ids"]
    counts = torch.bincount(chosen, minlength=experts)
    padded = (counts + block - 1) // block * block
    ends = padded.cumsum(0)
    order = chosen.argsort(stable=True)
    rank = torch.arange(results, device=chosen.device) - (counts.cumsum(0) - counts)[chosen[order]]
    ids.fill_(results)
    ids[(ends - padded)[chosen[order]] + rank] = order.to(ids.dtype)
    starts = torch.arange(of_block.numel(), device=chosen.device) * block
    of_block.copy_(torch.searchsorted(ends, starts, right=True).clamp(max=experts - 1))
    tensors["num_tokens_post_padded"].fill_(int(ends[-1]))


def _choose(results: int, experts: int, picks: int, load: str, generator: torch.Generator) -> torch.Tensor:
    """int64 (results,): experts, of ``picks`` results that follow one another no two the same."""
    if load == "one":
        return torch.full((results,), experts - 1, device=generator.device)
    step = 2 if load == "few" else 1
    keys = torch.rand(-(-results // picks), experts // step, generator=generator, device=generator.device)
    return keys.argsort(1)[:, :picks].reshape(-1)[:results] * step
