"""The references against what runs on a CPU: the baselines, residuals, and loops written from the definitions."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
np = pytest.importorskip("numpy")

from kgbench.baselines.references import aten, aten_memory, cublas, cublas_vectors, vllm, vllm_norms  # noqa: E402
from kgbench.baselines.registry import Unavailable, load_baseline  # noqa: E402
from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.harness.machine.arguments import TORCH_NAMES  # noqa: E402
from kgbench.harness.verdict.call_requests import written_names  # noqa: E402
from kgbench.harness.verdict.compare import Limits, compare  # noqa: E402
from kgbench.harness.verdict.contract import forbidden_change  # noqa: E402
from kgbench.harness.verdict.inputs import GUARD_BYTES, itemsize, make_inputs  # noqa: E402
from kgbench.harness.verdict.judge import OverloadJudge  # noqa: E402
from kgbench.harness.verdict.reference import ReferenceFunction  # noqa: E402
from kgbench.harness.wire.buffers import LAZY_BITS  # noqa: E402
from kgbench.problem.cases import TensorSpec, bind, case_bytes, expand_cases  # noqa: E402
from kgbench.problem.model import TIMED_KINDS, Problem, plain_type  # noqa: E402
from kgbench.problem.registry import Registry  # noqa: E402
from tests.sampling import sample  # noqa: E402

pytestmark = pytest.mark.torch
FLAGS = ("N", "T", "C")


def generator(seed: int = 0) -> Any:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, dtype: Any = torch.float64) -> Any:
    return torch.randn(shape, generator=generator(sum(shape)), dtype=dtype)


def column_major(matrix: Any, leading: int) -> Any:
    """The storage of a matrix or batch with NaN in its padding, flat, and the logical view of it."""
    *batch, rows, columns = matrix.shape
    storage = torch.full((*batch, columns, leading), float("nan"), dtype=matrix.dtype)
    view = storage[..., :rows].mT
    view.copy_(matrix)
    return storage.reshape(-1), view


def openblas(name: str) -> Any:
    try:
        return load_baseline(f"openblas:{name}", "cpu").call
    except Unavailable as reason:
        pytest.skip(str(reason))


# --- aten ---


@pytest.mark.parametrize(
    ("shape", "dim"), [((7, 97), 1), ((7, 97), 0), ((3, 5, 4), -2), ((), 0), ((0, 4), 1), ((4, 0), 1)]
)
def test_softmax_is_pytorchs(shape: tuple[int, ...], dim: int) -> None:
    x = 30 * normal(*shape)
    found = aten.softmax(x, dim)
    torch.testing.assert_close(found.value, load_baseline("aten:softmax.int", "cpu").call(x, dim))


def test_softmax_treats_nan_and_infinities_as_pytorch_does() -> None:
    inf, nan = math.inf, math.nan
    x = torch.tensor([[1.0, nan, 0], [inf, 1, 2], [-inf, -inf, -inf], [-inf, 0, 1]], dtype=torch.float64)
    found = aten.softmax(x, 1)
    torch.testing.assert_close(found.value, torch.softmax(x, 1), equal_nan=True)
    assert found.magnitude is not None
    assert bool(torch.isfinite(found.magnitude).all())


def test_mm_is_pytorchs() -> None:
    a, b = normal(9, 31), normal(31, 4)
    found = aten.mm(a, b)
    torch.testing.assert_close(found.value, load_baseline("aten:mm", "cpu").call(a, b))
    by_hand = math.sqrt(sum(float(a[2, k] * b[k, 3]) ** 2 for k in range(31)))
    assert found.magnitude is not None
    assert float(found.magnitude[2, 3]) == pytest.approx(by_hand)


ADDITIONS = [
    (torch.float64, torch.float64, 0.3),
    (torch.int64, torch.int64, -3),
    (torch.int8, torch.int8, 1),
    (torch.bool, torch.bool, 1),
    (torch.int32, torch.int64, 7),
    (torch.int64, torch.float64, 0.5),
]


@pytest.mark.parametrize(("left", "right", "alpha"), ADDITIONS)
def test_add_is_pytorchs_with_broadcasting(left: Any, right: Any, alpha: Any) -> None:
    a = (normal(4, 1, 5) * 100).to(left)
    b = (normal(3, 1) * 100).to(right)
    wanted = load_baseline("aten:add.Tensor", "cpu").call(a, b, alpha=alpha)
    found = aten.add(a, b, alpha)
    torch.testing.assert_close(found.value.to(wanted.dtype), wanted, rtol=1e-15, atol=1e-13)


def test_add_of_a_number_is_exact_only_among_integers() -> None:
    whole = torch.arange(5)
    assert torch.equal(aten.add(whole, -4, 3).value, whole - 12)
    mixed = aten.add(whole, 2.1, 1).value
    assert mixed.dtype == torch.float64
    torch.testing.assert_close(mixed, whole.to(torch.float64) + 2.1, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(2, 3), (5,), ()])
def test_t_is_pytorchs_view(shape: tuple[int, ...]) -> None:
    x = normal(*shape)
    found, wanted = aten.t(x), load_baseline("aten:t", "cpu").call(x)
    assert (found.shape, found.stride(), found.data_ptr()) == (wanted.shape, wanted.stride(), x.data_ptr())


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(0.9, 6.5, 1.2), (-0.9, 2.1, 2.0), (5.5, -2.5, -1.5), (0, 2.5, 1), (-3.7, 9.2, 2), (0, 9, 4)],
)
def test_arange_of_integers_cuts_floats_off_as_aten_does(start: float, end: float, step: float, dtype: str) -> None:
    right = torch.ops.aten.arange.start_step(start, end, step, dtype=getattr(torch, dtype))
    answered = aten_memory.arange(start, end, step, dtype=dtype).value
    assert answered.dtype in (torch.int64, right.dtype)
    assert torch.equal(answered.to(right.dtype), right)


# --- cublas ---


def op(matrix: Any, flag: str) -> Any:
    return matrix if flag == "N" else matrix.T if flag == "T" else matrix.conj().T


@pytest.mark.parametrize(("ta", "tb"), list(itertools.product(FLAGS, FLAGS)))
def test_sgemm_openblas_numpy_and_reference_agree(ta: str, tb: str) -> None:
    m, n, k, pad, alpha, beta = 9, 7, 13, 3, 0.5, -1.5
    a = normal(*((m, k) if ta == "N" else (k, m)), dtype=torch.float32)
    b = normal(*((k, n) if tb == "N" else (n, k)), dtype=torch.float32)
    c = normal(m, n, dtype=torch.float32)
    wanted = alpha * (op(a.double().numpy(), ta) @ op(b.double().numpy(), tb)) + beta * c.double().numpy()
    found = cublas.gemm(ta, tb, alpha, a.double(), b.double(), beta, c.double())["C"].value
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
    (sa, va), (sb, vb), (sc, vc) = (column_major(x, x.shape[0] + pad) for x in (a, b, c))
    before = sc.clone()
    openblas("cublasSgemm_v2")(ta, tb, m, n, k, alpha, sa, va.stride(1), sb, vb.stride(1), beta, sc, vc.stride(1))
    np.testing.assert_allclose(vc.numpy(), wanted, rtol=0, atol=1e-5)
    padding = torch.isnan(before)
    assert torch.equal(torch.isnan(sc), padding)


def test_gemm_reads_no_c_with_beta_0_and_no_product_with_alpha_0() -> None:
    a, c, nan = normal(3, 4), normal(3, 3), torch.full((3, 3), math.nan, dtype=torch.float64)
    found = cublas.gemm("N", "T", 2.0, a, a, 0.0, nan)["C"]
    torch.testing.assert_close(found.value, 2 * a @ a.T)
    found = cublas.gemm("N", "N", 0.0, nan, nan, 3.0, c)["C"]
    torch.testing.assert_close(found.value, 3 * c)
    assert found.magnitude is not None
    torch.testing.assert_close(found.magnitude, 3 * c.abs())


def test_gemm_of_nothing_scales_c() -> None:
    c = normal(3, 2)
    found = cublas.gemm("N", "N", 1.0, normal(3, 0), normal(0, 2), 0.5, c)["C"]
    torch.testing.assert_close(found.value, 0.5 * c)


@pytest.mark.parametrize(
    ("ta", "tb", "shared"), [(*flags, s) for flags in itertools.product(FLAGS, FLAGS) for s in (0, 1)]
)
def test_zgemm_batches_agree(ta: str, tb: str, shared: bool) -> None:
    m, n, k, batch, alpha, beta = 5, 4, 6, 3, 0.5 + 0.3j, -1j
    a = normal(batch, *((m, k) if ta == "N" else (k, m)), dtype=torch.complex128)
    b = normal(batch, *((k, n) if tb == "N" else (n, k)), dtype=torch.complex128)
    b = b[:1].expand(b.shape) if shared else b
    c = normal(batch, m, n, dtype=torch.complex128)
    wanted = np.stack(
        [alpha * op(x.numpy(), ta) @ op(y.numpy(), tb) + beta * z.numpy() for x, y, z in zip(a, b, c, strict=True)]
    )
    found = cublas.gemm(ta, tb, alpha, a, b, beta, c)["C"].value
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
    (sa, va), (sb, vb), (sc, vc) = (column_major(x, x.shape[1] + 2) for x in (a, b, c))
    strides = (va.stride(0), 0 if shared else vb.stride(0), vc.stride(0))
    openblas("cublasZgemmStridedBatched")(
        ta, tb, m, n, k, alpha, sa, va.stride(2), strides[0], sb, vb.stride(2), strides[1], beta, sc, vc.stride(2),
        strides[2], batch,
    )  # fmt: skip
    np.testing.assert_allclose(vc.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize(("incx", "incy"), [(1, 1), (2, 3), (-1, 1), (-1, -1), (-3, 2), (2, -3)])
def test_dot_walks_increments_as_blas_does(incx: int, incy: int) -> None:
    n = 11
    x, y = normal(1 + (n - 1) * abs(incx), dtype=torch.float32), normal(1 + (n - 1) * abs(incy), dtype=torch.float32)
    start_x, start_y = ((1 - n) * inc if inc < 0 else 0 for inc in (incx, incy))
    wanted = sum(float(x[start_x + i * incx]) * float(y[start_y + i * incy]) for i in range(n))
    found = cublas_vectors.dot(x.double()[:: abs(incx)], incx, y.double()[:: abs(incy)], incy)["result"].value
    assert found.tolist() == [pytest.approx(wanted, rel=1e-12)]
    result = torch.full((1,), math.nan)
    openblas("cublasSdot_v2")(n, x, incx, y, incy, result)
    assert result.tolist() == [pytest.approx(wanted, abs=1e-5)]


def test_dot_of_nothing_is_zero() -> None:
    empty, result = torch.empty(0), torch.full((1,), math.nan)
    assert cublas_vectors.dot(empty.double(), 1, empty.double(), 1)["result"].value.tolist() == [0.0]
    openblas("cublasSdot_v2")(0, empty, 1, empty, 1, result)
    assert result.tolist() == [0.0]


@pytest.mark.parametrize(("side", "uplo", "trans", "diag"), list(itertools.product("LR", "LU", FLAGS, "NU")))
def test_trsm_solves_and_reads_only_its_triangle(side: str, uplo: str, trans: str, diag: str) -> None:
    m, n, alpha = 9, 6, -0.5
    order = m if side == "L" else n
    a = 0.5 * normal(order, order) / math.sqrt(order)
    a.diagonal().copy_(torch.linspace(1, 2, order, dtype=torch.float64))
    a = a.float().double()
    b = normal(m, n).float().double()
    kept = np.tril(a.numpy()) if uplo == "L" else np.triu(a.numpy())
    if diag == "U":
        np.fill_diagonal(kept, 1.0)
    other = torch.ones(order, order).triu(1) if uplo == "L" else torch.ones(order, order).tril(-1)
    poisoned = a.masked_fill(other.bool(), math.nan)
    if diag == "U":
        poisoned.diagonal().fill_(math.nan)
    expected = cublas.trsm(side, uplo, trans, diag, alpha, poisoned, b)["B"]
    x = expected.value.numpy()
    product = op(kept, trans) @ x if side == "L" else x @ op(kept, trans)
    np.testing.assert_allclose(product, alpha * b.numpy(), rtol=0, atol=1e-14)
    assert expected.magnitude is not None
    assert bool((expected.magnitude >= expected.value.abs()).all())
    (sa, va), (sb, vb) = column_major(poisoned.float(), order + 2), column_major(b.float(), m + 1)
    openblas("cublasStrsm_v2")(side, uplo, trans, diag, m, n, alpha, sa, va.stride(1), sb, vb.stride(1))
    np.testing.assert_allclose(vb.double().numpy(), x, rtol=0, atol=1e-5)


def test_trsm_with_alpha_0_gives_zeros() -> None:
    nan = torch.full((3, 3), math.nan, dtype=torch.float64)
    assert torch.equal(cublas.trsm("L", "L", "N", "N", 0.0, nan, normal(3, 2))["B"].value, torch.zeros(3, 2).double())


def test_openblas_refuses_sizes_that_do_not_fit() -> None:
    x = torch.zeros(1)
    with pytest.raises(OverflowError, match="32-bit"):
        openblas("cublasSdot_v2")(2**31, x, 1, x, 1, x)


def test_a_reference_in_a_candidates_place_may_exchange_its_arguments() -> None:
    x, y = normal(5), normal(5) + 1
    first, second = x.clone(), y.clone()
    function = ReferenceFunction("kgbench.baselines.references.cublas_vectors:swap")
    views = {name: [[5], [1], 0, None, {}, []] for name in "xy"}
    hints = {"_views": views, "_written": ["x", "y"], "_returns": [], "_alias": False}
    function.as_entry({"n": 5, "x": x, "incx": 1, "y": y, "incy": 1, **hints})
    assert torch.equal(x, second)
    assert torch.equal(y, first)


# --- vllm ---


def test_rms_norm_is_its_definition() -> None:
    x, weight, out = normal(3, 17), normal(17), torch.empty(3, 17, dtype=torch.float64)
    found = vllm.rms_norm(input=x, weight=weight, epsilon=0.25)["out"].value
    for row, column in itertools.product(range(3), range(17)):
        mean = sum(float(v) ** 2 for v in x[row]) / 17
        assert float(found[row, column]) == pytest.approx(
            float(x[row, column]) / math.sqrt(mean + 0.25) * float(weight[column])
        )
    vllm.rms_norm_plain(out, x, weight, 0.25)
    torch.testing.assert_close(out, found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("residual", [False, True])
def test_a_norm_may_be_rounded_before_the_weight_also_among_denormals(residual: bool) -> None:
    x = 100 * normal(64, 1024, dtype=torch.float32)
    x[:, 1:] *= 1e-7
    x, weight = x.half(), (1 + 0.3 * normal(1024, dtype=torch.float32)).half()
    wide = x.double()
    if residual:
        given = {"input": wide, "residual": torch.zeros_like(wide), "weight": weight.double(), "epsilon": 1e-6}
        right = vllm_norms.fused_add_rms_norm(**given)["input"]
    else:
        right = vllm.rms_norm(input=wide, weight=weight.double(), epsilon=1e-6)["out"]
    normed = (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).half()
    limits = Limits("rounding", ulps=4, compute="float16")
    assert compare("out", normed * weight, right, limits) is None
    assert compare("out", normed, right, limits) is not None
    assert compare("out", torch.where(normed.abs() < 2**-14, 0, normed * weight), right, limits) is not None


@pytest.mark.parametrize(("is_neox", "split", "rot_dim"), list(itertools.product((True, False), (True, False), (8, 4))))
def test_rotary_embedding_is_its_definition(is_neox: bool, split: bool, rot_dim: int) -> None:
    tokens, heads, head_size = 5, 3, 8
    positions = torch.tensor([4, 0, 2, 2, 6])
    cache, query, key = normal(7, rot_dim), normal(tokens, heads, head_size), normal(tokens, 1, head_size)
    half, wanted = rot_dim // 2, query.clone()
    for t, h, j in itertools.product(range(tokens), range(heads), range(half)):
        first, second = (j, j + half) if is_neox else (2 * j, 2 * j + 1)
        cos, sin = cache[positions[t], j], cache[positions[t], half + j]
        x, y = query[t, h, first].clone(), query[t, h, second].clone()
        wanted[t, h, first], wanted[t, h, second] = x * cos - y * sin, y * cos + x * sin
    given = query if split else query.reshape(tokens, -1)
    found = vllm.rotary_embedding(positions, given, key, head_size, cache, is_neox)
    assert set(found) == {"query", "key"}
    torch.testing.assert_close(found["query"].value.reshape(wanted.shape), wanted)
    assert set(vllm.rotary_embedding(positions, given, None, head_size, cache, is_neox)) == {"query"}
    plain = given.clone()
    vllm.rotary_embedding_plain(positions, plain, None, head_size, cache, is_neox)
    torch.testing.assert_close(plain, found["query"].value)


def test_reshape_and_cache_stores_each_token_once_and_skips_padding() -> None:
    tokens, heads, head_size, block_size, blocks, x = 6, 2, 8, 4, 3, 4
    key, value = normal(tokens, heads, head_size), normal(tokens, heads, head_size) + 1
    key_cache = normal(blocks, heads, head_size // x, block_size, x)
    value_cache = normal(blocks, heads, head_size, block_size)
    slots = torch.randperm(blocks * block_size, generator=generator())[:tokens]
    vllm.prepare_slots({"slot_mapping": slots}, {"skip_every": 3}, generator())
    assert (slots == -1).nonzero().flatten().tolist() == [1, 4]
    wanted_key, wanted_value = key_cache.clone(), value_cache.clone()
    for t, h, d in itertools.product(range(tokens), range(heads), range(head_size)):
        if slots[t] >= 0:
            block, place = divmod(int(slots[t]), block_size)
            wanted_key[block, h, d // x, place, d % x] = key[t, h, d]
            wanted_value[block, h, d, place] = value[t, h, d]
    found = vllm.reshape_and_cache(key, value, key_cache, value_cache, slots)
    assert torch.equal(found["key_cache"].value, wanted_key)
    assert torch.equal(found["value_cache"].value, wanted_value)
    one = torch.ones(1)
    vllm.reshape_and_cache_plain(key, value, key_cache, value_cache, slots, "auto", one, one)
    assert torch.equal(key_cache, wanted_key)
    assert torch.equal(value_cache, wanted_value)


def paged_inputs(sequences: int, longest: int, heads: int, kv_heads: int, ragged: bool) -> dict[str, Any]:
    head_size, block_size, x = 16, 8, 8
    table = -(-longest // block_size)
    blocks = sequences * table + 2
    tensors = {
        "key_cache": normal(blocks, kv_heads, head_size // x, block_size, x),
        "value_cache": normal(blocks, kv_heads, head_size, block_size),
        "block_tables": torch.zeros(sequences, table, dtype=torch.int32),
        "seq_lens": torch.zeros(sequences, dtype=torch.int32),
        "query": normal(sequences, heads, head_size),
    }
    vllm.prepare_paged(tensors, {"max_seq_len": longest, "ragged": ragged}, generator(7))
    return {**tensors, "num_kv_heads": kv_heads, "scale": 0.25, "block_size": block_size, "max_seq_len": longest}


def attention_by_loops(inputs: dict[str, Any], slopes: Any) -> Any:
    """paged_attention one token at a time, straight from the layout."""
    query, keys, values = inputs["query"], inputs["key_cache"], inputs["value_cache"]
    sequences, heads, head_size = query.shape
    block_size, x = values.shape[-1], keys.shape[-1]
    out = torch.zeros_like(query)
    for s, h in itertools.product(range(sequences), range(heads)):
        length, group = int(inputs["seq_lens"][s]), h // (heads // inputs["num_kv_heads"])
        logits, rows = [], []
        for t in range(length):
            block, place = int(inputs["block_tables"][s, t // block_size]), t % block_size
            key = torch.stack([keys[block, group, d // x, place, d % x] for d in range(head_size)])
            bias = 0.0 if slopes is None else float(slopes[h]) * (t - length + 1)
            logits.append(inputs["scale"] * float(query[s, h] @ key) + bias)
            rows.append(values[block, group, :, place])
        top = max(logits)
        weights = [math.exp(logit - top) for logit in logits]
        for weight, row in zip(weights, rows, strict=True):
            out[s, h] += weight / sum(weights) * row
    return out


@pytest.mark.parametrize(("heads", "kv_heads", "alibi"), [(2, 2, False), (4, 2, False), (4, 1, True)])
def test_paged_attention_is_its_definition(heads: int, kv_heads: int, alibi: bool) -> None:
    inputs = paged_inputs(3, 21, heads, kv_heads, ragged=True)
    slopes = torch.linspace(0.1, 0.4, heads, dtype=torch.float64) if alibi else None
    wanted = attention_by_loops(inputs, slopes)
    found = vllm.paged_attention(**inputs, alibi_slopes=slopes)["out"]
    torch.testing.assert_close(found.value, wanted)
    assert found.magnitude is not None
    assert bool((found.magnitude > 0).all())
    out = torch.empty_like(wanted)
    order = ("query", "key_cache", "value_cache", "num_kv_heads", "scale", "block_tables", "seq_lens", "block_size",
             "max_seq_len")  # fmt: skip
    vllm.paged_attention_plain(out, *(inputs[name] for name in order), slopes, "auto", None, None)
    torch.testing.assert_close(out, wanted, rtol=1e-5, atol=1e-5)


def test_everything_outside_the_sequences_is_poison() -> None:
    inputs = paged_inputs(4, 21, 2, 2, ragged=True)
    lengths, tables = inputs["seq_lens"], inputs["block_tables"]
    assert int(lengths[0]) == 21
    assert int(lengths[-1]) == 1
    assert len(set(tables.flatten().tolist())) == tables.numel()
    clean = ~torch.isnan(inputs["value_cache"])
    assert int(clean[:, 0, 0, :].sum()) == int(lengths.sum())
    assert torch.equal(clean[:, 0, 0, :], ~torch.isnan(inputs["key_cache"])[:, 0, 0, :, 0])
    last_block = int(tables[-1, 0])
    assert clean[last_block, 0, 0].tolist() == [True] + [False] * 7


def test_a_timed_case_has_the_same_lengths_in_every_run() -> None:
    lengths = paged_inputs(4, 20, 2, 2, ragged=False)["seq_lens"].tolist()
    assert lengths == [20, 18, 15, 13]


# --- a run's share of the problems (tests/sampling.py), case by case ---

PROBLEMS = [path for problem, path in Registry().paths.items() if problem in sample()]
BY_VALUE = [path for path in PROBLEMS if re.search(r"^kind: (compute|view)$", path.read_text(encoding="utf-8"), re.M)]
"""The others have arguments that only a worker makes, or values that chance decides; honest runs judge them."""


class LibraryCall:
    """A call of a library on copies of a case's inputs."""

    def __init__(self, inputs: Any, call: Any) -> None:
        self.inputs = inputs
        self.chunks = {name: chunk.image.clone() for name, chunk in inputs.chunks.items()}
        """Every chunk's bytes, as the call leaves them."""
        positional, keyword = [], {}
        for argument in inputs.bound.arguments:
            value = self.handed(argument.value, plain_type(argument.type))
            if argument.keyword_only:
                keyword[argument.name] = value
            else:
                positional.append(value)
        self.returned = call(*positional, **keyword)

    def handed(self, value: Any, type_text: str) -> Any:
        """An argument as a worker would have it."""
        if isinstance(value, TensorSpec):
            return self.tensor(self.inputs.chunks[value.name])
        if isinstance(value, tuple):
            return [self.handed(each, type_text) for each in value]
        if value is not None and type_text == "device":
            return torch.device("cpu")
        return getattr(torch, value) if value is not None and type_text in TORCH_NAMES else value

    def tensor(self, chunk: Any) -> Any:
        spec, image = chunk.spec, self.chunks[chunk.spec.name]
        if spec.passed == "pointers":
            addresses = self.inputs.pointers[spec.name].steps - chunk.place.storage_offset_bytes
            return addresses + image.data_ptr() + GUARD_BYTES + spec.offset * itemsize(spec.dtype)
        # A storage of its own over the same bytes, so that a view's offset counts from where it should.
        stored = torch.from_numpy(image.numpy()[GUARD_BYTES : image.numel() - GUARD_BYTES])
        stored = stored.view(getattr(torch, spec.dtype))
        if spec.passed == "storage":
            return stored[spec.offset :]
        return LAZY_BITS[spec.lazy](stored.as_strided(spec.shape, spec.strides, spec.offset))

    def outputs(self, placed: Any, overload: Any) -> dict[str, Any]:
        """By name, as judges have them."""
        chunks = self.inputs.chunks
        found = {name: chunks[name].view(self.chunks[name]) for name in written_names(self.inputs.bound)}
        if self.returned is None or overload.returned_argument:
            return found
        returned = self.returned if isinstance(self.returned, (tuple, list)) else (self.returned,)
        return found | dict(zip(placed.outputs, returned, strict=True))

    def untouched(self, outputs: dict[str, Any]) -> dict[str, Any]:
        """The same from a call that does nothing."""
        chunks = self.inputs.chunks
        return {
            name: chunks[name].view(chunks[name].image) if name in chunks else torch.zeros_like(each)
            for name, each in outputs.items()
        }


@pytest.mark.parametrize("path", BY_VALUE, ids=lambda path: path.stem)
def test_the_library_passes_every_case_and_doing_nothing_fails(path: Path, shipped: Callable[[Path], Problem]) -> None:
    judged = moved = 0
    for overload in shipped(path).overloads:
        if not (target := overload.baseline.get("cpu") or overload.fallback):
            continue
        try:
            library = load_baseline(target, "cpu").call
        except Unavailable as reason:
            pytest.skip(str(reason))
        judge, judged = OverloadJudge(overload, torch.device("cpu")), judged + 1
        for case in expand_cases(overload, "cpu", None, "a seed", optional_dtypes=True):
            inputs = make_inputs(overload, bind(overload, case), generator(5))
            placed = replace(judge.place_inputs(inputs), remembers=True)
            done = LibraryCall(inputs, library)
            outputs = done.outputs(placed, overload)
            verdict = judge.values(placed, outputs)
            assert verdict.outcome is Outcome.PASSED, (case, verdict.reason)
            moved += judge.values(placed, done.untouched(outputs)).outcome is not Outcome.PASSED
            for name, chunk in inputs.chunks.items():
                assert forbidden_change(name, chunk, done.chunks[name], case.variables) is None, case
    if not judged:
        pytest.skip("no library on a CPU has any of its overloads")
    assert moved >= 10 * judged


@pytest.mark.timeout(300)  # of all problems it takes 10 s on an idle machine
def test_cases_are_few_and_bench_cases_fit_their_gpu(shipped: Callable[[Path], Problem]) -> None:
    problems = [shipped(path) for path in PROBLEMS]
    found = [line for each in problems for overload in each.overloads for line in oversized(overload, each.kind)]
    assert found == []


def oversized(overload: Any, kind: str) -> list[str]:
    """What an overload's cases are too many or too large for."""
    name, found = overload.signature.name, []
    if len([case for case in expand_cases(overload, "cpu", None, "a seed") if case.phase != "opinfo"]) > 80:
        found.append(f"{name}: more than 80 cases by hand")
    for memory_gb in (24, 80, 140):
        cases = expand_cases(overload, "cuda", memory_gb, "a seed")
        sizes = [case_bytes(bind(overload, case)) for case in cases if case.phase == "bench"]
        if max(sizes, default=0) >= 1.1e9:
            found.append(f"{name}: {max(sizes)} bytes in a bench case for {memory_gb} GB")
        if len(sizes) > 6:
            found.append(f"{name}: {len(sizes)} bench cases for {memory_gb} GB")
        if not sizes and kind in TIMED_KINDS and overload.required:
            found.append(f"{name}: no bench case for {memory_gb} GB")
    return found


# --- docs/calling-conventions.md ---

PAGE = Path(__file__).parents[2] / "docs" / "calling-conventions.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: re.search(r"def (\w+)", block).group(1))
def test_the_calls_in_the_documentation_run(block: str) -> None:
    exec(compile(block, str(PAGE), "exec"), {"__name__": "documentation"})


def test_the_documentation_calls_every_source() -> None:
    defined = set(re.findall(r"^def (\w+)", "\n".join(BLOCKS), flags=re.MULTILINE))
    assert {"softmax_int", "cublasSgemm_v2", "rms_norm"} <= defined
