"""What references of norms that quantise and of the Hadamard transform accept: rounding as vLLM rounds."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from kgbench.baselines.references import vllm_norms  # noqa: E402
from kgbench.harness.verdict.compare import Limits, share_used  # noqa: E402

pytestmark = pytest.mark.torch

FP8 = torch.float8_e4m3fn


def near_ties_of_zero(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of one large number and many whose codes lie near 2⁻¹⁰, and weights."""
    generator = torch.Generator().manual_seed(7)
    rows = torch.randint(130, 141, (4096, 16), generator=generator) * 2.0**-24
    rows[:, 0] = 3.7
    return rows.to(dtype), (0.9 + 0.2 * torch.rand(16, generator=generator)).to(dtype)


def codes_of(rows: torch.Tensor, weight: torch.Tensor, steps: torch.dtype) -> torch.Tensor:
    """As vLLM computes them, with the norm and its product with the weight rounded to ``steps``."""
    normed = (rows.float() * torch.rsqrt(rows.float().square().mean(-1, keepdim=True) + 1e-6)).to(steps)
    weighted = (normed.float() * weight.float()).to(steps).float()
    return (weighted / (weighted.abs().amax(-1, keepdim=True) / 448)).to(FP8)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norms_may_be_rounded_to_the_input_s_dtype_or_not_at_all(dtype: torch.dtype) -> None:
    rows, weight = near_ties_of_zero(dtype)
    limits = Limits("quantize", ulps=3.0, compute=str(dtype).removeprefix("torch."))
    empty = torch.empty(0, dtype=torch.float64)
    arguments = (empty, rows.double(), weight.double(), 1e-6, None, None)
    expected = vllm_norms.rms_norm_dynamic_per_token_quant(*arguments)["result"]
    assert share_used(codes_of(rows, weight, dtype), expected, limits) < 1
    assert share_used(codes_of(rows, weight, torch.float32), expected, limits) < 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_dtype_of_a_reference_s_argument_is_found_again(dtype: torch.dtype) -> None:
    drawn = torch.randn(64, generator=torch.Generator().manual_seed(1)).to(dtype)
    assert vllm_norms.drawn_as(drawn.double()) == dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_hadamard_transform_may_round_between_its_steps(dtype: torch.dtype) -> None:
    """Also where the first step gathers most of a row in few numbers, which are then rounded more coarsely."""
    rows = (1 + 0.5 * torch.randn(64, 512, generator=torch.Generator().manual_seed(3))).to(dtype)
    mixed = rows.float()
    for size, step in ((16, 1), (16, 16), (2, 256)):
        parts = mixed.reshape(64, -1, size, step).transpose(-1, -2)
        mixed = vllm_norms._hadamard(parts).transpose(-1, -2).reshape(64, 512).to(dtype).float()
    limits = Limits("rounding", ulps=4.0, compute=str(dtype).removeprefix("torch."))
    expected = vllm_norms.hadacore_transform(rows.double(), True)
    assert 0.2 < share_used(mixed.to(dtype), expected, limits) < 0.8
