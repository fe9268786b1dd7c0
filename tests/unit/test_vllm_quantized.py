"""What references of quantised products accept: rounding as vLLM rounds, and nothing that is coarser."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from kgbench.baselines.packing import ggml  # noqa: E402
from kgbench.baselines.references import vllm_ggml, vllm_quantized  # noqa: E402
from kgbench.core.paths import problems_dir  # noqa: E402
from kgbench.harness.verdict.compare import Limits, share_used  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402

pytestmark = pytest.mark.torch

LIMITS = Limits("rounding", ulps=4.0, compute="float16")
TYPES = sorted(ggml.FORMATS)


def matrix(number: int, rows: int, k: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(number)
    packed = torch.randint(0, 256, (rows, ggml.row_bytes(number, k)), generator=generator).to(torch.uint8)
    vllm_ggml.prepare_ggml({"W": packed}, {"type": number, "values": "default"}, generator)
    return packed


def quantised_product(x: torch.Tensor, packed: torch.Tensor, number: int, largest: int) -> torch.Tensor:
    """As vLLM computes it: codes, scale and sum of 32 activations each, scale and sum in float16."""
    scaled, added = ggml.parts(packed, number, unsigned=number in (2, 6))
    blocks = x.double().reshape(x.shape[0], -1, 32)
    step = blocks.abs().amax(-1, keepdim=True) / largest
    codes = torch.where(step > 0, (blocks / step).round(), torch.zeros_like(blocks))
    again = (codes * step.half().double()).reshape(x.shape)
    if number == 10:
        return again @ (scaled + added).T
    sums = blocks.sum(-1).half().double()
    return again @ scaled.T + sums @ added.reshape(packed.shape[0], -1, 32)[..., 0].T


@pytest.mark.parametrize("number", TYPES)
@pytest.mark.parametrize("std", [1.0, 30.0])
def test_activations_of_eight_bits_pass(number: int, std: float) -> None:
    packed = matrix(number, 256, 1024)
    x = torch.randn(32, 1024, generator=torch.Generator().manual_seed(7)) * std
    expected = vllm_ggml.ggml_mul_mat(packed, x.double(), number, 256)
    share = share_used(quantised_product(x, packed, number, 127).float(), expected, LIMITS)
    assert 0.1 < share < 0.95
    assert share_used((x @ ggml.dequantize(packed, number).float().T), expected, LIMITS) < 0.1


@pytest.mark.parametrize("number", TYPES)
def test_activations_of_fewer_bits_fail(number: int) -> None:
    packed = matrix(number, 256, 1024)
    x = torch.randn(32, 1024, generator=torch.Generator().manual_seed(7))
    expected = vllm_ggml.ggml_mul_mat(packed, x.double(), number, 256)
    coarse = quantised_product(x, packed, number, 31)
    assert share_used(coarse.float(), expected, LIMITS) == float("inf")
    small = x.to(torch.float8_e4m3fn).double() @ ggml.dequantize(packed, number).T
    assert number in (2, 6) or share_used(small.float(), expected, LIMITS) == float("inf")


def half_sums(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b with a sum rounded to float16 after every 16 products."""
    total = torch.zeros(len(a), b.shape[1], dtype=torch.float16)
    for k in range(0, a.shape[1], 16):
        total = (total.float() + a[:, k : k + 16].float() @ b[k : k + 16].float()).half()
    return total


@pytest.mark.parametrize("k", [256, 4096, 14336])
def test_sums_in_float16_pass_and_activations_of_float8_do_not(k: int) -> None:
    """The library adds in float16 where gptq_gemm unpacks the matrix first."""
    generator = torch.Generator().manual_seed(k)
    a = torch.randn(32, k, generator=generator).half()
    packed = torch.randint(-(1 << 31), 1 << 31, (k // 8, 64), generator=generator).int()
    zeros = torch.randint(-(1 << 31), 1 << 31, (k // 128, 8), generator=generator).int()
    scales = (0.005 + 0.015 * torch.rand(k // 128, 64, generator=generator)).half()
    rest = (packed, zeros, scales, torch.empty(0, dtype=torch.int32), True, False, 4)
    expected = vllm_quantized.gptq_gemm(a.double(), packed, zeros, scales.double(), *rest[3:])
    _, weights = vllm_quantized._gptq(*rest)
    limits = Limits("rounding", ulps=16.0, compute="float16")
    assert 0.05 < share_used(half_sums(a, weights), expected, limits) < 0.7
    small = (a.float().to(torch.float8_e4m3fn).double() @ weights.double()).half()
    assert k > 4096 or share_used(small, expected, limits) == float("inf")


def test_the_problems_have_the_limits_that_the_scale_is_made_for() -> None:
    for name in ("ggml_mul_mat_a8", "ggml_mul_mat_vec_a8", "ggml_moe_a8", "ggml_moe_a8_vec"):
        text = (Path(problems_dir()) / "vllm" / f"{name}.yaml").read_text()
        assert 'tolerance: {rule: rounding, ulps: 4, compute: "float16"}' in text
        assert load_problem(Path(problems_dir()) / "vllm" / f"{name}.yaml").overloads
    assert LIMITS.element_factor() * torch.finfo(torch.float16).eps / 2 == vllm_ggml.LIMIT_SHARE


@pytest.mark.parametrize(("load", "most"), [("even", 5), ("few", 4), ("one", 1)])
def test_sorted_ids_name_every_result_once(load: str, most: int) -> None:
    results, experts, block = 22, 8, 4
    tensors = {
        "W": matrix(8, 1, 32),
        "sorted_token_ids": torch.empty(22 + 8 * 3 + 2, dtype=torch.int32),
        "expert_ids": torch.empty(12, dtype=torch.int32),
        "num_tokens_post_padded": torch.empty(1, dtype=torch.int32),
    }
    variables = {"type": 8, "values": "default", "tokens": 11, "top_k": 2, "picks": 2, "experts": experts}
    generator = torch.Generator().manual_seed(2)
    vllm_ggml.prepare_ggml_moe(tensors, {**variables, "load": load, "block": block}, generator)
    ids, end = tensors["sorted_token_ids"], int(tensors["num_tokens_post_padded"])
    assert sorted(ids[ids < results].tolist()) == list(range(results))
    assert end % block == 0
    assert bool((ids[end:] == results).all())
    used = tensors["expert_ids"][: end // block]
    assert used.tolist() == sorted(used.tolist())
    assert len(set(used.tolist())) <= max(most, 1) or load == "even"
    assert bool((ids[:end].reshape(-1, block)[:, 0] < results).all())
