"""``kgbench try-backend``: a model without and with an exported package, compared."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from kgbench.cli.options import check_machine, device_option, json_option
from kgbench.core.errors import MachineError, UsageError, shown_path

_TIMEOUT_S: Final = 3600.0
"""Seconds that the whole comparison may take."""
_REASONS: Final = 3
"""Most reasons that are printed per operator; ``--json`` has all."""
_INTERPRETED: Final = "kernels ran in Triton's interpreter, so speed means nothing"
_EPILOG = """
\b
Examples:
  kgbench try-backend my_backend --model gpt2 --gradients
  kgbench try-backend my_backend --model gpt2 --set n_layer=2 --tokens 16 --set attn_implementation=eager
  kgbench try-backend my_backend --model my_models:build --refused calls.txt
    then judge and time the kernels in these calls, too, and export both runs
    kgbench run --model dir:my_kernels --suite torchbench:calls.txt
    kgbench export RUN last --backend my_wider_backend

Exit codes: 0 outputs agree, 1 they differ by more than allowed, 2 wrong command line, 3 the model cannot be run
"""


@click.command("try-backend", epilog=_EPILOG, short_help="Run a model with an exported package and without.",
               context_settings={"max_content_width": 110})  # fmt: skip
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--model", required=True, metavar="NAME", help="gpt2, llama-small, resnet50, or MODULE:FUNCTION of yours "
              "that returns (model, arguments). Weights are random, nothing is downloaded.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the model. Repeatable.")
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Batch size.")
@click.option("--tokens", type=click.IntRange(min=1), default=128, show_default=True, help="Length of the input text.")
@click.option("--dtype", type=click.Choice(("float32", "float16", "bfloat16")), default="float32", show_default=True,
              help="Dtype of weights and inputs.")  # fmt: skip
@click.option("--gradients", is_flag=True, help="Compare the gradients of all parameters, too.")
@click.option("--compile", "compiler", default="", metavar="BACKEND",
              help="With torch.compile(backend=BACKEND), such as aot_eager or inductor.")  # fmt: skip
@click.option("--repeats", type=click.IntRange(min=0), default=10, show_default=True, help="Timed calls on each side.")
@click.option("--refused", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the calls that the guards left to ATen as a trace file for --suite trace:FILE.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of weights and inputs.")
@device_option
@json_option
def try_backend(folder: Path, settings: tuple[str, ...], compiler: str, refused: Path | None, as_json: bool,
                **asked: Any) -> None:  # fmt: skip
    """Run a model without and with an exported package; compare outputs, print calls and speed.

    The reference is the same model in float64. With the kernels, an output may be twice as far from it as without, plus
    four units of rounding.
    """
    from kgbench.core.torch_process import NoAnswer, ask

    given = dict(map(_setting, settings))
    if not list(folder.glob("*/table.json")):
        words = f"{shown_path(folder)} holds no package that `kgbench export RUN --backend DIR` wrote; name its folder"
        raise UsageError("KGB197", words)
    check_machine()
    request = {
        **asked, "folder": str(folder), "settings": given, "compile": compiler,
        "refused": refused is not None, "device": _device(asked["device"]),
    }  # fmt: skip
    try:
        answer = ask("kgbench.torchtools.try_backend", request, _TIMEOUT_S)[-1]
    except NoAnswer as error:
        raise MachineError("KGB317", f"the model could not be run: {error}") from None
    if "failed" in answer:
        wrong = UsageError if answer["usage"] else MachineError
        raise wrong("KGB198" if answer["usage"] else "KGB317", answer["failed"])
    _write(refused, answer.pop("refused"))
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    else:
        for line in lines(answer):
            click.echo(line)
    sys.exit(int(not all(row["ok"] for row in answer["compared"])))


def _device(spelling: str) -> str:
    from kgbench.harness.machine.devices import find_devices

    device = find_devices(spelling)[0]
    return "cpu" if device.kind == "cpu" else f"cuda:{device.index}"


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name.isidentifier() and equals):
        raise UsageError("KGB198", f"--set {text}: expected KEY=VALUE, such as n_layer=2")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _write(path: Path | None, text: str) -> None:
    if path is None:
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError("KGB198", f"--refused {shown_path(path)}: cannot be written: {error.strerror}") from error


def lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """The answer as lines for people."""
    yield f"{answer['model']}, {answer['parameters']} parameters, {answer['dtype']} on {answer['device']}"
    yield from _call_lines(answer)
    yield from _compared_lines(answer)
    speed = answer["speed"]
    if answer["interpreted"]:
        yield f"speed: {_INTERPRETED}"
    elif speed:
        yield f"speed: {_speed_words(speed)} (medians of whole calls)"
        yield from _recorded_lines(answer["speed_recorded"])


def _call_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    for name, row in answer["calls"].items():
        library = next(key for key in row if key not in ("kernel", "why"))
        if row["kernel"] or row[library]:
            yield f"{name}: kernel {row['kernel']}, {library} {row[library]}"
        for why, count in list(row["why"].items())[:_REASONS]:
            yield f"  {count}: {why}"
    for why in answer["absent"]:
        yield f"not in place: {why}"
    if answer["compile"] and not any(row["kernel"] for row in answer["calls"].values()):
        yield (
            f"no kernel was called: torch.compile with {answer['compile']} calls no ATen operator of these, it makes "
            "code of its own; aot_eager calls them"
        )


def _compared_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    rows = answer["compared"]
    wrong = [row for row in rows if not row["ok"]]
    for row in wrong or sorted(rows, key=_share)[-1:]:
        words = "differs" if row in wrong else "largest error"
        if "limit" in row:
            yield (
                f"{words}: {row['name']}: root mean square error {row['rms_error_with']:.3g} with the kernels, "
                f"{row['rms_error_without']:.3g} without, allowed {row['limit']:.3g}"
            )
        else:
            yield f"{words}: {row['name']}: {row['why']}"
    if answer["not_compared"]:
        yield f"not compared: {answer['not_compared']}"
    yield f"compared: {len(rows) - len(wrong)} of {len(rows)} agree"


def _recorded_lines(recorded: Mapping[str, Any] | None) -> Iterator[str]:
    if recorded is None:
        return
    if "why" in recorded:
        yield f"in a CUDA graph: not timed: {recorded['why']}"
        return
    wrong = "" if recorded["ok"] else "; its outputs differ by more than allowed"
    yield f"in a CUDA graph: {_speed_words(recorded)}{wrong}"


def _speed_words(speed: Mapping[str, Any]) -> str:
    return f"{speed['without_ms']:.3g} ms without, {speed['with_ms']:.3g} ms with: {speed['ratio']:.3g}x"


def _share(row: Mapping[str, Any]) -> float:
    return float(row["rms_error_with"] / row["limit"]) if row.get("limit") else 0.0
