"""Adapters of installed packages: what their files name, the text that is judged, and what scores do with the rest."""

from __future__ import annotations

import ast
import tomllib

import pytest

from kgbench.cli.remote import check_server
from kgbench.core.details.absence import NotOffered
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.evaluation.request import RunRequest
from kgbench.models import adapted
from kgbench.models.adapted import FOLDER, Adapter, adapter
from kgbench.models.provider import ModelError, Provider, provider_forms, provider_of
from kgbench.problem.registry import Registry
from kgbench.scores.rows import rows
from kgbench.scores.samples import Selected
from tests.unit.made_results import result

NAMES = sorted(adapted.adapter_names())
REGISTRY = Registry()


def of_file(name: str) -> Adapter:
    """The adapter as if its package were installed, in version 1.2."""
    with pytest.MonkeyPatch.context() as bend:
        bend.setattr(adapted.importlib.metadata, "version", lambda package: "1.2")
        return adapter(name)


def test_each_file_is_a_provider() -> None:
    forms = provider_forms()
    assert set(NAMES) <= set(forms)
    assert [forms[name] for name in NAMES] == NAMES
    assert NAMES == ["flaggems", "liger", "torch.compile", "vllm"]


@pytest.mark.parametrize("name", NAMES)
def test_every_call_of_a_file_is_of_a_required_overload(name: str) -> None:
    data = tomllib.loads((FOLDER / f"{name.replace('.', '__')}.toml").read_text())
    for key in data.get("calls", {}):
        problem_id, _, overload = key.partition(".")
        problem = REGISTRY.find(problem_id)
        required = {each.name for each in problem.overloads if each.required}
        assert overload in required, key


@pytest.mark.parametrize("name", NAMES)
def test_each_text_is_python_that_defines_every_required_entry(name: str) -> None:
    found = of_file(name)
    keys = {key.partition(".")[0] for key in found.calls} or {"aten/softmax", "aten/acosh", "aten/unsafe_split"}
    for problem_id in keys:
        problem = REGISTRY.find(problem_id)
        text = found.source(problem)
        assert text is not None
        defined = set()
        for node in ast.parse(text).body:
            defined |= {node.name} if isinstance(node, ast.FunctionDef) else set()
            defined |= {each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)}
        assert {each.signature.name for each in problem.overloads if each.required} <= defined
        assert "1.2" in text


def test_an_overload_that_a_package_lacks_says_so() -> None:
    text = of_file("flaggems").source(REGISTRY.find("aten/add")) or ""
    assert "add_Tensor = flag_gems.add" in text
    assert 'def add_Scalar(self, other, alpha=1):\n    raise NotImplementedError("it has no add_Scalar")' in text


def test_results_are_named_with_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapted.importlib.metadata, "version", lambda package: "5.0.2")
    for spelling in ("flaggems", "flaggems:5.0.2"):
        provider = provider_of(spelling)
        assert isinstance(provider, Provider)
        assert provider.model == "flaggems:5.0.2"
    with pytest.raises(ModelError, match=r"flag_gems 5.0.2 is installed; write --model flaggems"):
        provider_of("flaggems:4.1")


def test_a_package_that_is_not_installed_is_named_with_pips_name() -> None:
    with pytest.MonkeyPatch.context() as bend:

        def nowhere(package: str) -> str:
            raise adapted.importlib.metadata.PackageNotFoundError(package)

        bend.setattr(adapted.importlib.metadata, "version", nowhere)
        with pytest.raises(ModelError, match="liger_kernel is not installed; pip install liger-kernel"):
            provider_of("liger")


def test_without_problems_those_are_judged_that_the_package_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapted.importlib.metadata, "version", lambda package: "0.8.5")
    liger = provider_of("liger")
    assert isinstance(liger, Provider)
    ids = ["aten/add", "aten/softmax", "vllm/rms_norm"]
    assert liger.narrow(ids, chosen=False) == ["aten/softmax", "vllm/rms_norm"]
    assert liger.narrow(ids, chosen=True) == ids
    with pytest.raises(ModelError, match="has nothing for the 1 selected problems"):
        liger.narrow(["aten/add"], chosen=False)
    (none,) = liger.candidates(REGISTRY.find("aten/add"))
    assert (none.outcome, none.adapted) == (Outcome.NOT_OFFERED, "liger_kernel 0.8.5")
    assert none.reason == "liger_kernel 0.8.5 does not offer it: it has no such operator"


def test_what_is_not_offered_stands_in_no_denominator() -> None:
    lacking = result("aten/c", outcome=Outcome.NOT_OFFERED, detail=NotOffered("liger_kernel 0.8.5", "no"), reason="")
    results = [result("aten/a"), result("aten/b", outcome=Outcome.WRONG_VALUE), lacking]
    (row,) = rows([Selected(each.problem, "compute") for each in results], results)
    assert (row.problems, row.correct, row.share_correct()) == (2, 1.0, 0.5)
    assert row.outcomes["not offered"] == 1


def test_a_service_is_asked_for_no_packages_kernels() -> None:
    request = RunRequest.here("liger:0.8.5")
    with pytest.raises(UsageError, match=r"leave --model liger:0\.8\.5 out"):
        check_server("http://localhost:1", request, None)
    check_server("http://localhost:1", RunRequest.here("examples"), None)
