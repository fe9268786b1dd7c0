"""``kgbench new aten``: what torch says of an operator is a problem file that holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("expecttest", reason="needs expecttest: pip install 'kgbench[opinfo]'")

from kgbench.cli.main import main
from kgbench.problem.model import GPU_PRESETS
from kgbench.problem.registry import load_problem
from kgbench.torchtools.aten_draft import file_text
from kgbench.torchtools.aten_schema import Unknown

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("opinfo")]


def kgbench(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


DRAFTS = {
    "logaddexp": ("default", "out"),
    "amax": ("default", "out"),
    "flip": ("default", "out"),
    "ne": ("Tensor", "Scalar", "Scalar_out", "Tensor_out"),
    "sub_.Tensor": ("Tensor",),
    "logaddexp.out": ("out",),
    "exp": ("",),
}


@pytest.mark.in_turn("kgbench/torchtools/")
@pytest.mark.usefixtures("here")
@pytest.mark.timeout(180)
def test_a_draft_is_valid_as_it_stands() -> None:
    begun = kgbench("new", "aten", "aten::erf")
    assert begun.exit_code == 0, begun.output
    checked = kgbench("validate", "my_problems/aten/erf.yaml")
    assert checked.exit_code == 0, checked.output


@pytest.mark.in_turn("kgbench/torchtools/", turns=1)
@pytest.mark.usefixtures("here")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", DRAFTS)
def test_a_draft_has_each_overload_with_cases_of_samples(name: str) -> None:
    overloads = DRAFTS[name]
    operator, _, overload = name.partition(".")
    path = Path("drafts") / "aten" / f"{operator}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(file_text(operator, overload), encoding="utf-8")
    if overloads != ("",):
        assert tuple(each.name for each in load_problem(path).overloads) == overloads
    for each in load_problem(path).overloads:
        assert each.check
        assert each.opinfo
        assert set(each.bench) == {"cpu", *GPU_PRESETS}
    checked = kgbench("validate", str(path))
    assert checked.exit_code == 0, checked.output


def test_what_a_draft_says_comes_from_torch() -> None:
    text = file_text("amax")
    assert (
        'summary: "Returns the maximum value of each slice of the input tensor in the given dimension(s) dim"' in text
    )
    assert "category: reduction" in text
    assert (
        'entry: "amax_out(self: Tensor, dim: list[int] = [], keepdim: bool = False, *, out: Tensor) -> Tensor"' in text
    )
    assert 'out: {access: write, shape: "reduced(self_shape, dim, keepdim)"}' in text
    assert 'reference: "torch.amax(self, dim, keepdim)"' in text
    assert "- aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor" in text
    assert "kind: view" in file_text("permute")
    assert 'dtype: "bool"' in file_text("ne")


def test_what_torch_cannot_say_is_marked() -> None:
    assert "# EDIT: this fails or differs from ATen; give the correct result" in file_text("mse_loss")
    assert "# EDIT: draw indices that are in range" in file_text("index_add")
    assert "# EDIT: give the distribution" in file_text("rand_like")


def test_what_torch_does_not_have_is_said() -> None:
    with pytest.raises(Unknown, match="has no operator aten::nosuch"):
        file_text("nosuch")
    with pytest.raises(Unknown, match="aten::erf has no overload 'Tensor'; it has default, out"):
        file_text("erf", "Tensor")
    with pytest.raises(Unknown, match="which is for TorchScript"):
        file_text("erf", "int")
