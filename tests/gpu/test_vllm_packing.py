"""The packed formats against vLLM's own kernels: what one packs the other must read, without the problems between.

Skips where vLLM, or one of its operators, is not there. Dequantising operators are compared value by value; orders of
weights bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from kgbench.baselines import vllm  # noqa: E402
from kgbench.baselines.packing import allspark, awq, ggml, gptq, marlin, words  # noqa: E402
from kgbench.baselines.references import vllm_ggml, vllm_quantized  # noqa: E402
from kgbench.baselines.registry import Unavailable  # noqa: E402

pytestmark = pytest.mark.timeout(300)

DEVICE = "cuda"


@pytest.fixture(scope="module")
def library() -> Callable[[str], Any]:
    """An operator of torch.ops._C by its name."""
    try:
        vllm._load_libraries()
    except Unavailable as reason:
        pytest.skip(str(reason))

    def operator(name: str) -> Any:
        if not hasattr(torch.ops._C, name):
            pytest.skip(f"this vLLM registers no {name}")
        return getattr(torch.ops._C, name)

    return operator


def codes(shape: tuple[int, ...], bits: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(0, 1 << bits, shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def permutation(n: int, seed: int = 2) -> torch.Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(DEVICE, torch.int32)


def assert_close(got: torch.Tensor, wanted: torch.Tensor, scale: torch.Tensor, units: float) -> None:
    """Within ``units`` of float16 rounding of the scale."""
    error = (got.double() - wanted.double()).abs() / (scale.double() * 2.0**-11)
    worst = int(error.argmax())
    assert float(error.max()) <= units, f"{float(error.max()):.1f} units at {worst}, of {got.numel()} values"


def test_awq_dequantize(library: Callable[[str], Any]) -> None:
    given, zeros = codes((256, 128), 4), codes((4, 128), 4, seed=3)
    scales = (torch.rand(4, 128, device=DEVICE) * 0.02).half()
    got = library("awq_dequantize")(awq.pack(given), scales, awq.pack(zeros), 0, 0, 0)
    wanted = awq.weights(awq.pack(given), scales.double(), awq.pack(zeros))
    assert_close(got, wanted, wanted.abs() + 1e-6, 1.0)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("ordered", [True, False])
def test_gptq_shuffle(library: Callable[[str], Any], bits: int, ordered: bool) -> None:
    given = codes((128, 64), bits)
    perm = torch.empty(0, dtype=torch.int32, device=DEVICE) if ordered else permutation(128)
    packed = gptq.pack_rows(given, bits)
    wanted = gptq.shuffle(packed, perm, bits)
    library("gptq_shuffle")(packed, perm, bits)
    torch.cuda.synchronize()
    assert torch.equal(packed, wanted)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("exllama", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_gptq_gemm_with_ones_on_the_diagonal_gives_the_matrix(
    library: Callable[[str], Any], bits: int, exllama: bool, second: bool
) -> None:
    given, zeros = codes((128, 64), bits), codes((2, 64), bits, seed=3)
    scales = (0.5 + torch.rand(2, 64, device=DEVICE)).half()
    packed = gptq.pack_rows(given, bits, gptq.shuffled(bits) if exllama else gptq.sequential(bits))
    group = (torch.arange(128, device=DEVICE) // 64).int()
    index = torch.empty(0, dtype=torch.int32, device=DEVICE) if exllama else group
    a = torch.eye(128, device=DEVICE, dtype=torch.float16)
    got = library("gptq_gemm")(a, packed, gptq.pack_columns(zeros, bits), scales, index, exllama, second, bits)
    offset = 0 if second else 1
    wanted = (given - zeros[group.long()] - offset) * scales.double()[group.long()]
    assert_close(got, wanted, wanted.abs() + 0.01, 2.0)


@pytest.mark.parametrize("number", sorted(ggml.FORMATS))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_ggml_dequantize(library: Callable[[str], Any], number: int, dtype: str) -> None:
    generator = torch.Generator().manual_seed(number)
    packed = torch.randint(0, 256, (16, ggml.row_bytes(number, 512)), generator=generator).to(torch.uint8)
    vllm_ggml.prepare_ggml({"W": packed}, {"type": number, "values": "default"}, generator)
    packed = packed.to(DEVICE)
    got = library("ggml_dequantize")(packed, number, 16, 512, getattr(torch, dtype))
    expected = vllm_ggml.ggml_dequantize(packed, number)
    assert expected.magnitude is not None
    assert_close(got, expected.value, expected.magnitude, 25.6 if dtype == "bfloat16" else 3.2)  # 1.6 of its last place


@pytest.mark.parametrize("number", [2, 3, 6, 7, 8, 10, 11, 12, 13, 14])
def test_blocks_of_sorted_ids_have_four(library: Callable[[str], Any], number: int) -> None:
    assert library("ggml_moe_get_block_size")(number) == 4


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("order", [marlin.PLAIN, marlin.EIGHT_BIT])
def test_gptq_marlin_repack(library: Callable[[str], Any], bits: int, order: str) -> None:
    given = codes((96, 192), bits)
    none = torch.empty(0, dtype=torch.int32, device=DEVICE)
    eight = order == marlin.EIGHT_BIT
    got = library("gptq_marlin_repack")(gptq.pack_rows(given, bits), none, 96, 192, bits, eight)
    assert torch.equal(got, marlin.pack(given, bits, order))
    assert torch.equal(marlin.unpack(got, bits, order), given)


@pytest.mark.parametrize("bits", [4, 8])
def test_gptq_marlin_repack_in_the_order_of_a_permutation(library: Callable[[str], Any], bits: int) -> None:
    given, perm = codes((96, 192), bits), permutation(96)
    got = library("gptq_marlin_repack")(gptq.pack_rows(given, bits), perm, 96, 192, bits, False)
    assert torch.equal(got, marlin.pack(given[perm.long()], bits))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("order", [marlin.PLAIN, marlin.EIGHT_BIT])
def test_awq_marlin_repack(library: Callable[[str], Any], bits: int, order: str) -> None:
    given = codes((96, 192), bits)
    got = library("awq_marlin_repack")(awq.pack(given, bits), 96, 192, bits, order == marlin.EIGHT_BIT)
    assert torch.equal(got, marlin.pack(given, bits, order))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("bits", "zero"), [(4, "none"), (8, "none"), (4, "points")])
def test_marlin_gemm_with_ones_on_the_diagonal_gives_the_matrix(
    library: Callable[[str], Any], groups: int, bits: int, zero: str
) -> None:
    """Weights, scales, zero points and bias, each in its order."""
    k, n = 256, 128
    given, zeros = codes((k, n), bits), codes((groups, n), 4, seed=3)
    scales = (0.5 + torch.rand(groups, n, device=DEVICE)).half()
    bias = torch.randn(n, device=DEVICE).half()
    type_id = {(4, "none"): 1125899907892224, (8, "none"): 1125899923621888, (4, "points"): 1125899906843648}
    got = library("marlin_gemm")(
        torch.eye(k, device=DEVICE, dtype=torch.float16),
        None,
        marlin.pack(given, bits),
        marlin.permute_columns(bias, marlin.SINGLE_SCALES),
        marlin.permute_columns(scales, marlin.scale_order(groups)),
        None,
        None,
        marlin.pack_zeros(zeros, 4) if zero == "points" else None,
        None,
        None,
        torch.zeros(1024, dtype=torch.int32, device=DEVICE),
        type_id[bits, zero],
        k,
        n,
        k,
        True,
        False,
        True,
        False,
    )
    group = torch.arange(k, device=DEVICE) // (k // groups)
    centre = zeros[group] if zero == "points" else 1 << (bits - 1)
    wanted = (given - centre) * scales.double()[group]
    assert_close(got, wanted + bias.double(), wanted.abs() + bias.double().abs() + 0.01, 4.0)


def test_marlin_int4_fp8_preprocess(library: Callable[[str], Any]) -> None:
    given, zeros = codes((64, 256), 4), codes((2, 256), 4, seed=3)
    packed, packed_zeros = words.pack(given, 4), words.pack(zeros, 4)
    operator = library("marlin_int4_fp8_preprocess")
    below = torch.where(given >= 8, given - 8, 15 - given)
    assert torch.equal(words.unpack(operator(packed, None, False), 4), below)
    own = zeros.repeat_interleave(32, 0)
    below = torch.where(given >= own, given - own, 15 - given)
    assert torch.equal(words.unpack(operator(packed, packed_zeros, False), 4), below)
    assert operator(packed, packed_zeros, True).data_ptr() == packed.data_ptr()
    assert torch.equal(words.unpack(packed, 4), below)


def test_cutlass_pack_scale_fp8(library: Callable[[str], Any]) -> None:
    every = torch.arange(127, dtype=torch.uint8, device=DEVICE).view(torch.float8_e4m3fn).reshape(1, -1)
    try:
        got = library("cutlass_pack_scale_fp8")(every)
    except (NotImplementedError, RuntimeError) as reason:
        pytest.skip(str(reason).splitlines()[0])
    assert torch.equal(got.float(), vllm_quantized.cutlass_pack_scale_fp8_plain(every).float())


@pytest.mark.parametrize("n", [64, 48])
def test_allspark_order(library: Callable[[str], Any], n: int) -> None:
    if torch.cuda.get_device_capability() >= (9, 0):
        pytest.skip("vLLM builds AllSpark's kernels for compute capability 8.0 to 8.9")
    given = codes((64, n), 8)
    scales = torch.rand(1, n, device=DEVICE).half()
    zeros = torch.randn(1, n, device=DEVICE).half()
    padded = allspark.round_up_32(n)
    got = torch.empty(padded, 64, dtype=torch.uint8, device=DEVICE)
    got_scales, got_zeros = (torch.empty(1, padded, dtype=torch.float16, device=DEVICE) for _ in range(2))
    library("rearrange_kn_weight_as_n32k16_order")(
        given.to(torch.uint8), scales, zeros, True, got, got_scales, got_zeros, 64, n, padded
    )
    assert torch.equal(got, allspark.pack(given))
    assert torch.equal(allspark.unpack_columns(got_scales, n), scales)
    assert torch.equal(allspark.unpack_columns(got_zeros, n), zeros)
