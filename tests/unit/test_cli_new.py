"""``kgbench new``: refused by ``validate`` until every marked line was changed, then right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner, Result

from kgbench.baselines import cublas_api
from kgbench.baselines.vllm_operators import OPERATORS
from kgbench.cli.draft_blas import NoDraft, blas_draft
from kgbench.cli.draft_vllm import TABLE, vllm_draft
from kgbench.cli.main import main
from kgbench.cli.validate import _read
from kgbench.problem.registry import Registry, load_problem
from kgbench.problem.schemas import parsed


def kgbench(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("source", ["aten", "vllm", "cublas", "mine"])
def test_validate_points_at_every_mark_and_accepts_the_edited_file(source: str) -> None:
    done = kgbench("new", source, "scale")
    assert done.exit_code == 0, done.output
    path = Path("my_problems") / source / "scale.yaml"
    assert f"kgbench validate {path}" in done.stdout
    lines = path.read_text(encoding="utf-8").splitlines()
    schema = lines[0].removeprefix("# yaml-language-server: $schema=file://")
    assert json.loads(Path(unquote(schema)).read_text(encoding="utf-8"))["properties"]["entry"]
    marked = [number for number, line in enumerate(lines, 1) if "# EDIT:" in line]
    refused = kgbench("validate", "--no-run", str(path))
    assert refused.exit_code == 2
    assert [int(number) for number in re.findall(rf"{path}:(\d+): ", refused.stdout)] == marked
    assert (
        f"{path}:4: summary: is still as kgbench new wrote it; say what the operator does, one line" in refused.stdout
    )
    edited = [line.partition("  # EDIT:")[0] for line in lines]
    edited[3] = "summary: a matrix doubled"
    edited = [re.sub(r"(cublas|openblas|vllm):scale", "aten:mul.Scalar", line) for line in edited]
    path.write_text("\n".join(edited) + "\n", encoding="utf-8")
    accepted = kgbench("validate", "--no-run", str(path))
    assert accepted.exit_code == 0, accepted.output
    assert load_problem(path).id == f"{source}/scale"


@pytest.mark.usefixtures("here")
def test_source_of_the_users_own_is_a_source_like_the_others() -> None:
    kgbench("new", "mine", "scale")
    path = Path("my_problems/mine/scale.yaml")
    path.write_text(re.sub(r"  # EDIT:.*", "", path.read_text(encoding="utf-8")), encoding="utf-8")
    listed = kgbench("list", "--problem-dir", "my_problems", "--source", "mine")
    assert listed.stdout.split()[0] == "mine/scale"
    assert Registry([Path("my_problems")]).select(["mine"]) == ["mine/scale"]
    wrong = kgbench("list", "--problem-dir", "my_problems", "--source", "mime")
    assert "there is no source 'mime'; there are aten, vllm, cublas, mine and all" in wrong.stderr


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("Mine", "scale"), "a source is named in lower case, digits and _, not 'Mine'"),
        (("mine", "2x"), "'2x' cannot be the name of a function"),
        (("aten", "softmax"), "kgbench has a problem aten/softmax; `kgbench show aten/softmax` prints it"),
        (("mine", "there"), "there.yaml exists"),
        (("mine", "x", "--out", "my_problems/mine/there.yaml"), "give another folder with --out DIR"),
    ],
)
def test_what_cannot_be_begun_ends_with_2_and_writes_nothing(arguments: tuple[str, ...], words: str) -> None:
    there = Path("my_problems/mine/there.yaml")
    there.parent.mkdir(parents=True)
    there.write_text("kept", encoding="utf-8")
    done = kgbench("new", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert [(path.name, path.read_text("utf-8")) for path in Path().rglob("*.yaml")] == [("there.yaml", "kept")]


# --- drafts from what a library declares ---


def drafted(source: str, name: str) -> str:
    done = kgbench("new", source, name)
    assert done.exit_code == 0, done.output
    assert "a draft; read it, decide what its TODO comments ask" in done.stdout
    return (Path("my_problems") / source / f"{name}.yaml").read_text(encoding="utf-8")


@pytest.mark.usefixtures("here")
def test_a_draft_of_a_blas_routine_is_its_declaration() -> None:
    text = drafted("cublas", "cublasSrot_v2")
    said = (
        'entry: "cublasSrot_v2(n: int, x: Tensor, incx: int, y: Tensor, incy: int, c: float, s: float) -> None"',
        'signature: "i pi pi s s"  # TODO: ',
        "dtypes: {required: [float32]}",
        '    strides: "(abs(incx),)"\n    passed: storage\n',
        "access: readwrite  # TODO: C says that it may be written",
        "reference: |  # EDIT: give the correct result; rot has no reference",
        "cublasSrot_v2(int n, float* x, int incx, float* y, int incy, const float* c, const float* s)",
    )
    for each in said:
        assert each in text, each
    assert "self * factor" not in text
    refused = kgbench("validate", "--no-run", "my_problems")
    (line,) = refused.stdout.splitlines()
    assert refused.exit_code == 2
    assert "reference: is still as kgbench new wrote it; give the correct result" in line


@pytest.mark.usefixtures("here")
def test_a_draft_of_a_routine_whose_relative_is_known_is_valid_as_it_stands() -> None:
    assert 'reference: "kgbench.baselines.references.cublas:gemm"' in drafted("cublas", "cublasZgemm_v2")
    assert 'live: "triangle(uplo, diag, i, j)"' in drafted("cublas", "cublasDtrsv_v2")
    done = kgbench("validate", "--no-run", "my_problems")
    assert done.exit_code == 0, done.output


def without_marks(text: str) -> str:
    return re.sub(r"  # EDIT:.*", "", text)


@pytest.mark.in_turn("kgbench/baselines/routines.py", turns=3)
def test_a_draft_of_every_routine_is_valid_but_for_its_reference(tmp_path: Path) -> None:
    drafts = {name: blas_draft(name) for name in cublas_api.known_routines() if _can_be_called(name)}
    assert len(drafts) > 250
    assert '    dtype: "float32"\n    passed: storage' in drafts["cublasScasum_v2"], "of complex64 numbers"
    wrong = {name: found for name, text in drafts.items() if (found := complaint(tmp_path, "cublas", name, text))}
    assert wrong == {}


def _can_be_called(routine: str) -> bool:
    return all(each.likely() for each in cublas_api.declared(routine) or ())


def complaint(folder: Path, source: str, name: str, text: str) -> str:
    path = folder / source / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(without_marks(text), encoding="utf-8")
    return _read(path).complaint


@pytest.mark.usefixtures("here")
def test_a_draft_of_an_operator_of_vllm_is_its_schema() -> None:
    text = drafted("vllm", "silu_and_mul")
    said = (
        'entry: "silu_and_mul(result: Tensor, input: Tensor) -> None"',
        'signature: "_C::silu_and_mul(Tensor! result, Tensor input) -> ()"',
        "result: {access: readwrite, ",
        "input: {access: read, ",
        "# EDIT: give the correct result; a schema does not tell it",
    )
    for each in said:
        assert each in text, each
    assert "self * factor" not in text


def test_a_draft_of_every_schema_is_valid_but_for_its_reference(tmp_path: Path) -> None:
    names = {parsed(line).name.partition("::")[2] for line in TABLE.read_text(encoding="utf-8").splitlines()}
    drafts, without = {}, {}
    for name in sorted(names - set(OPERATORS)):
        try:
            drafts[name] = vllm_draft(name)
        except NoDraft as error:
            without[name] = str(error)
    assert len(drafts) > 65
    assert [why for why in without.values() if "neither writes a tensor nor returns one" not in why] == []
    assert {name: found for name, text in drafts.items() if (found := complaint(tmp_path, "vllm", name, text))} == {}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("source", "name", "words"),
    [
        ("cublas", "cublasSrotten_v2", "cuBLAS 13.10 declares no cublasSrotten_v2; did you mean 'cublasSrot"),
        ("cublas", "cublasGemmEx", "no letter of a signature stands for its 'cublasComputeType_t computeType'"),
        ("vllm", "silu_and_mull", "vLLM 0.20.2 registers no silu_and_mull"),
    ],
)
def test_where_the_library_knows_nothing_a_skeleton_is_written_and_why(source: str, name: str, words: str) -> None:
    done = kgbench("new", source, name)
    assert done.exit_code == 0
    assert f"KGB611: a skeleton, no draft: {words}" in done.stderr
    assert "self * factor" in (Path("my_problems") / source / f"{name}.yaml").read_text(encoding="utf-8")


@pytest.mark.in_turn("kgbench/torchtools/", turns=3)
@pytest.mark.torch
@pytest.mark.usefixtures("here")
def test_the_references_of_drafts_run() -> None:
    """Of those that relatives have, and the placeholder."""
    for name in ("cublasDgemm_v2", "cublasSgemvBatched_64", "cublasCsyrk_v2", "cublasSnrm2_v2", "cublasSrot_v2"):
        text = drafted("cublas", name)
        Path(f"my_problems/cublas/{name}.yaml").write_text(without_marks(text), encoding="utf-8")
    text = drafted("vllm", "gelu_and_mul")
    Path("my_problems/vllm/gelu_and_mul.yaml").write_text(without_marks(text), encoding="utf-8")
    done = kgbench("validate", "my_problems")
    assert done.exit_code == 0, done.output
