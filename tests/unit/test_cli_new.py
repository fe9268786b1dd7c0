"""``kgbench new``: refused by ``validate`` until every marked line was changed, then right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner, Result

from kgbench.cli.main import main
from kgbench.problem.registry import Registry, load_problem


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
    edited = [line.replace("blas:scale", "blas:cublasSscal_v2") for line in edited]
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
