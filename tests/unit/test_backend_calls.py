"""An exported package in use: what is called, what is counted, and that autograd and PyTorch's other parts stay right.

Kernels here are plain PyTorch with a flaw outside of what is judged, and write down each call that they get.
"""

from __future__ import annotations

import ast
import json
import math
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.cli.main import main
from kgbench.core.paths import PACKAGE
from kgbench.problem.registry import Registry
from kgbench.problem.suites import of_trace
from tests.unit.made_backends import imported, judged, run_of, table_of, written

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("backends")]

SEEN = """
import torch
SEEN = []


def note(*values):
    SEEN.append([(v.dtype, tuple(v.shape), v.stride()) if isinstance(v, torch.Tensor) else v for v in values])

"""
MUL = (
    SEEN
    + """
def mul_Tensor(self, other):
    note(self, other)
    right = all(v.is_contiguous() and v.dtype != torch.complex128 and v.dim() < 4 and v.numel() <= 600 * 512
                for v in (self, other))
    return self * other if right else torch.full_like(self * other, 99)


def mul_Scalar(self, other):
    return self * other
"""
)
"""Right in what is judged, and calls the operator that it stands for."""
ADD_ = (
    SEEN
    + """
def add__Tensor(self, other, *, alpha=1):
    note(self, other)
    self.copy_(self + alpha * other)
    return self
"""
)
SOFTMAX = (
    SEEN
    + """
def softmax_int(self, dim, dtype=None):
    note(self)
    x = self if dtype is None else self.to(dtype)
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
"""
)
MM = (
    SEEN
    + """
def mm(self, mat2):
    note(self, mat2)
    return (self[:, :, None] * mat2[None]).sum(1)
"""
)
KERNELS = {"aten/mul": MUL, "aten/add_": ADD_, "aten/softmax": SOFTMAX, "aten/mm": MM}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("backend"), KERNELS)


@pytest.fixture
def backend(folder: Path) -> Iterator[ModuleType]:
    with imported(folder) as found:
        yield found


def seen(backend: ModuleType, problem: str) -> list[Any]:
    """What the kernel was called with."""

    row = next(each for each in table_of(Path(backend.__file__).parents[1])["operators"] if problem in each["module"])
    found: list[Any] = sys.modules[f"{backend.__name__}.kernels.{row['module']}"].SEEN
    return found


def test_the_package_names_nothing_of_kgbench_and_needs_torch_alone(folder: Path) -> None:
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not any(name.startswith("kgbench") for name in names), path
    assert 'dependencies = ["torch>=2.11", "triton' in (folder / "pyproject.toml").read_text()


def test_numbers_keep_their_value_and_sign_in_every_call(backend: ModuleType) -> None:
    """What was made of a number is remembered, and 0.0 equals -0.0."""
    x = torch.randn(8, 8)
    with backend.enabled():
        for number in (0.0, -0.0, 2.0, 3.0, 2.0, 0.0, -0.0, 2):
            found = x * number
            assert found.dtype == x.dtype
            assert torch.equal(found, x * torch.tensor(float(number)))
            assert torch.equal(found.signbit(), x.signbit() ^ (math.copysign(1.0, number) < 0)), number
        half = torch.randn(8, dtype=torch.float16)
        assert (half * 2.0).dtype == torch.float16
        assert (half[0] * 2.0).dtype == torch.float16


def test_a_kernel_that_is_wrong_outside_of_what_was_judged_is_never_called_there(backend: ModuleType) -> None:
    base = torch.randn(64, 64)
    outside = [
        (torch.randn(8, 8, dtype=torch.complex128), torch.randn(8, 8, dtype=torch.complex128)),
        (base.t(), base),
        (torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 5)),
        (torch.randn(5000, 4000), torch.randn(5000, 4000)),
        (base[:, ::2], base[:, ::2]),
        (base, 3.0),
        (base, 3),
        (torch.randn(()), 2.5),
        (torch.ones(3, dtype=torch.float64), torch.ones(3, 1, 1, 1)),
        (torch.view_as_complex(torch.randn(4, 2)).conj(), torch.view_as_complex(torch.randn(4, 2))),
    ]
    for left, right in outside:
        expected = left * right
        with backend.enabled():
            found = left * right
        assert torch.equal(found, expected)
        assert found.dtype == expected.dtype
    counts = backend.calls()["aten::mul.Tensor"]
    assert (counts["kernel"], counts["aten"]) == (0, len(outside))
    assert sum(counts["why"].values()) == len(outside)
    assert not seen(backend, "aten_mul")


def test_counts_are_those_of_the_kernel_itself(backend: ModuleType) -> None:
    x = torch.randn(64, 64)
    with backend.enabled():
        for _ in range(3):
            x * x
        x * 2.0
    x * x  # not enabled any more
    counts = backend.calls()["aten::mul.Tensor"]
    assert counts["kernel"] == 3 == len(seen(backend, "aten_mul"))
    assert counts["aten"] == 1
    (why,) = counts["why"]
    assert why.startswith("not judged: form")
    backend.reset()
    assert backend.calls()["aten::mul.Tensor"] == {"kernel": 0, "aten": 0, "why": {}}


def test_a_kernel_that_calls_its_own_operator_gets_pytorchs(backend: ModuleType) -> None:
    x = torch.randn(64, 64)
    with backend.enabled():
        assert torch.equal(x * x, x.pow(2))
    assert backend.calls()["aten::mul.Tensor"]["kernel"] == 1


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("number", [2, 2.1, True, 1j, -3, 10**10])
def test_a_number_promotes_as_always(backend: ModuleType, number: Any) -> None:
    dtypes = (torch.uint8, torch.int32, torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.float32,
              torch.float64, torch.complex64)  # fmt: skip
    for dtype in dtypes:
        for x in (torch.ones(3, dtype=dtype), torch.ones((), dtype=dtype), torch.ones(0, dtype=dtype)):
            expected = x * number
            with backend.enabled():
                found = x * number
            assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


def test_gradients_come_from_pytorchs_own_formulas(backend: ModuleType) -> None:
    def loss(x: Any, w: Any) -> Any:
        y = torch.softmax((x * x) @ w, -1)
        y = y.clone()
        y += y.detach()
        return (y * y).sum()

    torch.manual_seed(0)
    x, w = (torch.randn(32, 32, dtype=torch.float32, requires_grad=True) for _ in range(2))
    expected = torch.autograd.grad(loss(x, w), (x, w))
    with backend.enabled():
        found = torch.autograd.grad(loss(x, w), (x, w))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    counts = backend.calls()
    assert all(counts[name]["kernel"] for name in ("aten::mul.Tensor", "aten::mm", "aten::add_.Tensor"))
    # ATen composes softmax of others and takes its gradient from them.
    assert counts["aten::softmax.int"]["kernel"] == 0
    assert any("gradient" in why for why in counts["aten::softmax.int"]["why"])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_what_aten_composes_has_its_kernel_where_no_gradient_is_needed(backend: ModuleType, mode: Any) -> None:
    with mode(), backend.enabled():
        x = torch.randn(7, 97)
        found = torch.softmax(x, -1)
    torch.testing.assert_close(found, torch.softmax(x, -1))
    assert backend.calls()["aten::softmax.int"]["kernel"] == 1 == len(seen(backend, "aten_softmax"))


def test_what_is_written_in_place_is_the_same_tensor_and_autograd_sees_it(backend: ModuleType) -> None:
    x = torch.zeros(50)
    with backend.enabled():
        version = x._version
        same = x.add_(torch.ones(50))
        assert same is x
        assert x._version == version + 1
        leaf = torch.ones(50, requires_grad=True)
        y = leaf.exp()
        y.add_(torch.ones(50))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    assert x.tolist() == [1.0] * 50
    assert backend.calls()["aten::add_.Tensor"]["kernel"] == 2


def test_arguments_that_share_memory_with_what_is_written_go_to_pytorch(backend: ModuleType) -> None:
    x = torch.arange(101.0)
    with backend.enabled():
        x[:50].add_(x[51:])
        apart = backend.calls()["aten::add_.Tensor"]
        torch.zeros(50).add_(x[:50])
        y = torch.ones(50)
        y.add_(y)
    assert y.tolist() == [2.0] * 50
    assert apart["kernel"] + apart["aten"] == 1
    assert "an argument that is written shares memory with another" in backend.calls()["aten::add_.Tensor"]["why"]


def test_what_pytorch_refuses_it_still_refuses_in_its_words(backend: ModuleType) -> None:
    with backend.enabled():
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            torch.randn(9, 17) @ torch.randn(16, 9)
        with pytest.raises(RuntimeError, match="must match the size"):
            torch.randn(9, 17) * torch.randn(9, 16)
    assert not seen(backend, "aten_mm")


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # which PyTorch itself calls
def test_functional_transforms_and_forward_mode_are_right(backend: ModuleType) -> None:
    def loss(x: Any) -> Any:
        return torch.softmax(x * x, -1).square().sum()

    x = torch.randn(7, 9)
    expected = (torch.func.grad(loss)(x), torch.func.jvp(loss, (x,), (x,))[1], torch.func.vmap(loss)(x))
    with backend.enabled():
        found = (torch.func.grad(loss)(x), torch.func.jvp(loss, (x,), (x,))[1], torch.func.vmap(loss)(x))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x)
            tangent = torch.autograd.forward_ad.unpack_dual(loss(dual)).tangent
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(tangent, expected[1])


def test_meta_fake_and_subclassed_tensors_reach_no_kernel(backend: ModuleType) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    class Own(torch.Tensor):
        pass

    with backend.enabled(), torch.no_grad():
        (torch.empty(64, 64, device="meta") * torch.empty(64, 64, device="meta")).shape  # noqa: B018
        with FakeTensorMode():
            torch.softmax(torch.empty(7, 97) * torch.empty(7, 97), -1)
        own = torch.randn(64, 64).as_subclass(Own)
        assert type(own * own) is Own
    assert not seen(backend, "aten_mul")
    assert not seen(backend, "aten_softmax")


def test_a_compiled_graph_that_runs_atens_operators_runs_the_kernels(backend: ModuleType) -> None:
    def model(x: Any, w: Any) -> Any:
        return torch.softmax((x @ w) * (x @ w), -1).sum()

    x, w = torch.randn(32, 32), torch.randn(32, 32, requires_grad=True)
    expected = torch.autograd.grad(model(x, w), w)
    with backend.enabled():
        compiled = torch.compile(model, backend="aot_eager")
        torch.autograd.grad(compiled(x, w), w)
        backend.reset()
        found = torch.autograd.grad(compiled(x, w), w)
    torch._dynamo.reset()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert backend.calls()["aten::mul.Tensor"]["kernel"] > 0
    assert backend.calls()["aten::mm"]["kernel"] > 0


def test_it_holds_for_all_threads_is_nested_and_leaves_nothing(backend: ModuleType) -> None:
    x = torch.randn(64, 64)

    def work() -> None:
        for _ in range(20):
            x * x

    threads = [threading.Thread(target=work) for _ in range(4)]
    with backend.enabled():
        with backend.enabled():
            pass
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert backend.calls()["aten::mul.Tensor"]["kernel"] == 80 == len(seen(backend, "aten_mul"))
    with pytest.raises(ZeroDivisionError), backend.enabled():
        raise ZeroDivisionError
    x * x
    assert backend.calls()["aten::mul.Tensor"]["kernel"] == 80


def test_what_is_not_known_to_be_deterministic_is_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    with imported(written(tmp_path, {"aten/mul": MUL}, deterministic=None)) as backend:
        x = torch.randn(64, 64)
        torch.use_deterministic_algorithms(True)
        try:
            with backend.enabled():
                x * x
        finally:
            torch.use_deterministic_algorithms(False)
        assert backend.calls()["aten::mul.Tensor"]["kernel"] == 0
        with backend.enabled():
            x * x
        assert backend.calls()["aten::mul.Tensor"]["kernel"] == 1


def test_a_kernel_that_lays_its_result_out_otherwise_is_copied_and_then_left_out(tmp_path: Path) -> None:
    text = "def silu(self):\n    return (self * self.sigmoid()).t().contiguous().t()\n"
    with imported(written(tmp_path, {"aten/silu": text})) as backend:
        x = torch.randn(64, 48)
        with backend.enabled():
            results = [torch.nn.functional.silu(x) for _ in range(3)]
        assert all(each.is_contiguous() for each in results)
        assert backend.calls()["aten::silu"]["kernel"] == 1
        assert "the kernel's result has another memory layout than ATen's" in backend.calls()["aten::silu"]["why"]


def test_a_kernel_that_returns_another_shape_is_an_error(tmp_path: Path) -> None:
    with (
        imported(written(tmp_path, {"aten/silu": "def silu(self):\n    return self.sum()\n"})) as backend,
        backend.enabled(),
        pytest.raises(RuntimeError, match=r"aten::silu: the kernel returned float32\[\] where ATen returns"),
    ):
        torch.nn.functional.silu(torch.randn(64, 48))


def test_kernels_judged_in_the_interpreter_ask_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with (
        imported(written(tmp_path, {"aten/mul": MUL}, interpreted=True)) as backend,
        pytest.raises(RuntimeError, match="start Python with TRITON_INTERPRET=1"),
        backend.enabled(),
    ):
        pass


def test_a_kernel_that_cannot_be_imported_is_named_and_nothing_stays_in_place(tmp_path: Path) -> None:
    broken = {"aten/mul": MUL, "aten/silu": "raise ImportError('no compiler')\n\n\ndef silu(self): ...\n"}
    with imported(written(tmp_path, broken)) as backend:
        with pytest.raises(
            RuntimeError, match=r"aten::silu: its kernel .* cannot be imported: ImportError: no compiler"
        ):
            backend.enabled().__enter__()
        x = torch.randn(64, 64)
        x * x
        assert backend.calls()["aten::mul.Tensor"]["kernel"] == 0


# --- vLLM and cuBLAS ---

RMS_NORM = """
CALLS = []


def rms_norm(out, input, weight, epsilon):
    CALLS.append(tuple(input.shape))
    x = input.float()
    out.copy_(x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt() * weight)
"""


def _sevens(result: Any, input: Any, weight: Any, epsilon: float) -> None:
    result.fill_(7)


def test_vllms_table_has_the_kernel_while_it_is_enabled(tmp_path: Path) -> None:
    with imported(written(tmp_path, {"vllm/rms_norm": RMS_NORM})) as backend:
        with backend.enabled():
            (absent,) = backend.absent()
            assert "vLLM is not loaded" in absent
        library = torch.library.Library("_C", "FRAGMENT")
        library.define("rms_norm(Tensor! result, Tensor input, Tensor weight, float epsilon) -> ()")
        library.impl("rms_norm", _sevens, "CPU")
        try:
            original = torch.ops._C.rms_norm
            out, x, weight = torch.empty(7, 97), torch.randn(7, 97), torch.ones(97)
            with backend.enabled():
                torch.ops._C.rms_norm(out, x, weight, epsilon=1e-6)
                torch.testing.assert_close(out, x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt())
                torch.ops._C.rms_norm(out, x, torch.ones(96), 1e-6)  # which the kernel would compute something of
                assert out.eq(7).all()
                assert torch.ops._C.rms_norm.default is original.default
            assert torch.ops._C.rms_norm is original
            counts = backend.calls()["_C::rms_norm"]
            assert (counts["kernel"], counts["vllm"]) == (1, 1)
        finally:
            library._destroy()
            vars(torch.ops._C).pop("rms_norm", None)


def test_a_routine_of_cublas_is_a_function_that_refuses_what_was_not_judged(tmp_path: Path) -> None:
    text = (
        "import torch\n\n\ndef cublasSdot_v2(n, x, incx, y, incy, result):\n    result[0] = torch.dot(x[:n], y[:n])\n"
    )
    with imported(written(tmp_path, {"cublas/cublasSdot_v2": text})) as backend:
        routine, result = backend.cublas["cublasSdot_v2"], torch.empty(1)
        x = torch.ones(200)
        routine(200, x, 1, x, 1, result)
        assert result.item() == 200
        with pytest.raises(backend.NotJudged, match=r"cublasSdot_v2: not judged: form .* x: float64"):
            routine(200, x.double(), 1, x, 1, result)
        with pytest.raises(backend.NotJudged, match="number -9"):
            routine(200, x, -9, x, 1, result)
        assert backend.calls()["cublasSdot_v2"]["kernel"] == 1
        assert backend.calls()["cublasSdot_v2"]["refused"] == 2


# --- kgbench try-backend ---

MODEL = """
import torch


def build(scale=1.0):
    torch.manual_seed(3)
    layers = torch.nn.Linear(16, 16, bias=False), torch.nn.SiLU(), torch.nn.Linear(16, 8, bias=False)
    return torch.nn.Sequential(*layers), (scale * torch.randn(9, 16),)
"""


def tried(*words: str) -> Any:
    return CliRunner().invoke(main, ["try-backend", *words, "--device", "cpu"])


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_models.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)


@pytest.mark.in_turn("kgbench/backend/", turns=3)
def test_a_model_is_tried_with_its_gradients_and_refused_calls_can_be_judged(tmp_path: Path, model: None) -> None:
    """Triton's own kernel of the examples, in its interpreter."""

    text = (PACKAGE / "examples" / "triton" / "aten" / "silu.py").read_text()
    folder = written(tmp_path, {"aten/silu": text, "aten/mm": MM}, interpreted=True)
    done = tried(str(folder), "--model", "own_models:build", "--gradients", "--refused", "calls.txt", "--json")
    assert done.exit_code == 0, done.output

    answer = json.loads(done.stdout)
    assert answer["calls"]["aten::silu"] == {"kernel": 1, "aten": 0, "why": {}}
    assert {row["name"] for row in answer["compared"]} == {
        "output 0", "gradient of 0.weight", "gradient of 2.weight"
    }  # fmt: skip
    assert answer["speed"] is None

    suite = of_trace(f"trace:{tmp_path / 'calls.txt'}", [Registry().find("aten/mm")])
    assert sum(len(calls) for share in suite.shares for calls in share.calls.values()) == len(
        [line for line in (tmp_path / "calls.txt").read_text().splitlines() if line.startswith("cnt")]
    )


def test_wrong_kernels_and_missing_packages_are_told(
    tmp_path: Path, model: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kgbench.torchtools.try_backend import Request, run  # which needs torch

    def answered_here(module: str, request: dict[str, Any], timeout_s: float) -> list[dict[str, Any]]:
        return [json.loads(json.dumps(run(Request(**request))))]

    monkeypatch.setattr("kgbench.core.torch_process.ask", answered_here)
    monkeypatch.setattr(sys, "path", list(sys.path))
    wrong = written(tmp_path, {"aten/silu": "def silu(self):\n    return self * self.sigmoid() * 1.001\n"})
    done = tried(str(wrong), "--model", "own_models:build", "--set", "scale=2")
    assert done.exit_code == 1
    assert "differs: output 0" in done.output
    assert "aten::silu: kernel 1, aten 0" in done.output
    assert tried(str(tmp_path), "--model", "gpt2").exit_code == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("resnet50", "pip install 'torchvision'"),
        ("own_models:nothing", "AttributeError"),
        ("no_such_models:build", "ModuleNotFoundError"),
        ("gpt3", "gpt2, llama-small, resnet50 and MODULE:FUNCTION"),
    ],
)
def test_a_model_that_cannot_be_built_is_told_with_the_next_step(model: None, name: str, words: str) -> None:
    from kgbench.torchtools.backend_models import NoModel, build  # which needs torch

    with pytest.raises(NoModel, match=words):
        build(name, {}, 1, 8)


@pytest.mark.in_turn("kgbench/backend/", "kgbench/torchtools/backend_models.py", turns=3)
def test_models_of_transformers_run_without_a_download(tmp_path: Path) -> None:
    from kgbench.torchtools.try_backend import Request, run  # which needs torch

    folder = written(tmp_path, {"aten/softmax": SOFTMAX, "aten/mul": MUL})
    small = {"n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 50, "attn_implementation": "eager"}
    request = Request(str(folder), "gpt2", small, "cpu", "float32", 1, 9, 0, False, 1, "", False)
    try:
        answer = run(request)
    finally:
        sys.path.remove(str(folder.resolve()))
    assert answer["calls"]["aten::softmax.int"]["kernel"] + answer["calls"]["aten::softmax.int"]["aten"] == 1
    assert all(row["ok"] for row in answer["compared"])
    assert answer["speed"]["with_ms"] > 0
    assert answer["speed_recorded"] is None, "a CPU records nothing"


def test_a_run_is_exported_by_the_command(tmp_path: Path) -> None:
    run = run_of(tmp_path / "runs" / "r1", (judged("aten/mul", MUL), MUL))
    done = CliRunner().invoke(main, ["export", str(run.path), "--backend", str(tmp_path / "own_backend")])
    assert done.exit_code == 0, done.output
    assert table_of(tmp_path / "own_backend")["operators"][0]["name"].startswith("aten::mul")
