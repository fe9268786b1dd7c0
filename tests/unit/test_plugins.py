"""Providers and problem sources of other packages: found by entry points, and broken ones take nothing with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgbench.problem.registry import Registry
from tests.plugins import install_acme, kgbench, made_up, python

SHIPPED = Registry().ids()
GOOD = "summary: {0}\nkind: compute\ncategory: mine\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_acme(tmp_path_factory.mktemp("acme"))


def test_a_package_adds_a_source_of_problems(site: Path, tmp_path: Path) -> None:
    done = kgbench(site, "list", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, f"{len(SHIPPED) + 2} problems\n")
    ids = [line.split()[0] for line in done.stdout.splitlines()]
    assert ids == [*SHIPPED, "acme/double", "acme/triple"]
    chosen = kgbench(site, "list", "--source", "acme", "--json", cwd=tmp_path)
    assert [each["summary"] for each in json.loads(chosen.stdout)] == ["twice a matrix", "three times a matrix"]
    shown = kgbench(site, "show", "acme/triple", cwd=tmp_path)
    assert "acme_kernels.answers:triple" in shown.stdout


def test_list_imports_nothing_of_the_package(site: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from click.testing import CliRunner; from kgbench.cli.main import main\n"
        "done = CliRunner().invoke(main, ['list', '--source', 'acme'])\n"
        "print(done.exit_code, [name for name in sys.modules if name.startswith('acme')])"
    )
    done = python(site, program, cwd=tmp_path)
    assert done.stdout == "0 []\n", done.stderr


def test_a_package_adds_a_provider(site: Path, tmp_path: Path) -> None:
    lines = kgbench(site, "run", cwd=tmp_path).stderr
    assert "  acme            Acme's own kernels; or acme:wrong\n" in lines
    words = " ".join(kgbench(site, "run", "--help", cwd=tmp_path).stdout.split())
    assert "Who answers: acme, anthropic:MODEL, baseline, " in words
    unknown = kgbench(site, "run", "--model", "acm", cwd=tmp_path).stderr
    assert "KGB502" in unknown
    assert "Acme's own kernels" in unknown
    refused = kgbench(site, "run", "--model", "acme:x", "--source", "acme", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr == "kgbench: KGB503: --model acme:x: there is acme and acme:wrong\n"


def test_sizes_of_an_installed_source_are_known_and_its_problems_are_nobodys_own(site: Path, tmp_path: Path) -> None:
    program = (
        "from kgbench.problem.registry import Registry, declared_sizes, load_problem\n"
        "from kgbench.evaluation.coordinator import is_own\n"
        "from kgbench.core.paths import answer_dirs\n"
        "path = Registry().paths['acme/double']\n"
        "hidden = any(path.is_relative_to(folder) for folder in answer_dirs())\n"
        "print(declared_sizes()['acme'], is_own(load_problem(path)), hidden)"
    )
    done = python(site, program, cwd=tmp_path)
    assert done.stdout == "2 False True\n", done.stderr


# --- broken ones ---


def module(site: Path, name: str, text: str) -> None:
    site.mkdir(exist_ok=True)
    (site / f"{name}.py").write_text(text, encoding="utf-8")


def problem(site: Path, path: str, text: str = GOOD.format("a number")) -> None:
    file = site / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_a_broken_source_is_named_and_nothing_else_is_lost(tmp_path: Path) -> None:
    site = tmp_path / "site"
    made_up(site, "gone", "1.0", problems="gone = nowhere:problems")
    made_up(site, "empty", "1.0", problems="empty = emptypkg:problems")
    made_up(site, "headless", "1.0", problems="headless = headlesspkg")
    made_up(site, "stranger", "1.0", problems="stranger = strangerpkg")
    made_up(site, "taker", "2.0", problems="aten = takerpkg")
    made_up(site, "shouts", "1.0", problems="Shouts = shoutspkg")
    made_up(site, "whole", "1.0", problems="whole = wholepkg")
    for package in ("emptypkg", "headlesspkg", "strangerpkg", "takerpkg", "shoutspkg", "wholepkg"):
        problem(site, f"{package}/__init__.py", "raise RuntimeError('never imported')\n")
    problem(site, "headlesspkg/headless/a.yaml", "kind: compute\n")
    problem(site, "strangerpkg/stranger/a.yaml")
    problem(site, "strangerpkg/other/a.yaml")
    problem(site, "takerpkg/aten/softmax.yaml")
    problem(site, "shoutspkg/shouts/a.yaml")
    problem(site, "wholepkg/whole/a.yaml")
    done = kgbench(site, "list", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [*SHIPPED, "whole/a"]
    warnings = [line for line in done.stderr.splitlines() if "KGB630" in line]
    for words in (
        "gone 1.0: kgbench.problems 'gone' is left out: there is no package 'nowhere'",
        "empty 1.0: kgbench.problems 'empty' is left out: ",
        "headless 1.0: kgbench.problems 'headless' is left out: ",
        "stranger 1.0: kgbench.problems 'stranger' is left out: ",
        "taker 2.0: kgbench.problems 'aten' is left out: kgbench has 'aten' itself",
        "shouts 1.0: kgbench.problems 'Shouts' is left out: a source is named in lower case",
    ):
        assert any(f"KGB630: {words}" in line for line in warnings), words
    assert len(warnings) == 6


def test_a_broken_provider_is_named_and_nothing_else_is_lost(tmp_path: Path) -> None:
    site = tmp_path / "site"
    made_up(site, "raises", "1.0", providers="raises = raising_provider")
    made_up(site, "lacks", "1.0", providers="lacks = lacking_provider")
    made_up(site, "taker", "1.0", providers="dir = lacking_provider")
    made_up(site, "odd", "1.0", providers="odd = odd_provider")
    module(site, "raising_provider", "raise RuntimeError('no licence')\n")
    module(site, "lacking_provider", "FORM = SUMMARY = 'lacks'\n")
    text = "FORM = SUMMARY = 'odd'\ndef provider(argument, alias=None):\n    return argument or 1 / 0\n"
    module(site, "odd_provider", text)
    done = kgbench(site, "run", cwd=tmp_path)
    assert "KGB501" in done.stderr
    assert "dir:PATH " in done.stderr
    assert "KGB630: raises 1.0: kgbench.providers 'raises' is left out: " in done.stderr
    assert "importing raising_provider raises RuntimeError: no licence" in done.stderr
    assert "KGB630: lacks 1.0: kgbench.providers 'lacks' is left out: " in done.stderr
    assert "lacking_provider has no provider" in done.stderr
    assert "KGB630: taker 1.0: kgbench.providers 'dir' is left out: kgbench has 'dir' itself" in done.stderr
    assert "Traceback" not in done.stderr
    for spec, words in (
        ("raises", "KGB510: provider raises of raises 1.0: importing raising_provider raises RuntimeError: no licence"),
        ("odd", "KGB510: --model odd: odd 1.0: provider() raised ZeroDivisionError: division by zero"),
        ("odd:x", "KGB510: --model odd: odd 1.0: provider() returned a str, which is neither a ModelClient"),
    ):
        asked = kgbench(site, "run", "--model", spec, "--problems", "aten/t", cwd=tmp_path)
        assert asked.returncode == 2
        assert words in asked.stderr


def test_two_packages_with_one_name_are_both_refused_by_name(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for package in ("first", "second"):
        made_up(site, package, "1.0", problems=f"acme = {package}pkg", providers=f"acme = {package}_provider")
        problem(site, f"{package}pkg/acme/a.yaml")
        problem(site, f"{package}pkg/__init__.py", "")
    done = kgbench(site, "list", cwd=tmp_path)
    assert [line.split()[0] for line in done.stdout.splitlines()] == SHIPPED
    assert "first 1.0 and second 1.0 offer it both, so neither is used; uninstall one" in done.stderr
    asked = kgbench(site, "run", "--model", "acme", cwd=tmp_path).stderr
    assert "there is no provider 'acme'" in asked
    assert "kgbench.providers 'acme' is left out: first 1.0 and second 1.0 offer it both" in asked
