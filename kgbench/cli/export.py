"""``kgbench export``: a run's kernels as a package that PyTorch models use."""

from __future__ import annotations

from pathlib import Path

import click

from kgbench.cli.completion import complete_run
from kgbench.cli.options import json_option, out_option
from kgbench.core.errors import UsageError, shown_path

_EPILOG = """
\b
Examples:
  kgbench export last --backend my_backend
  pip install ./my_backend
  kgbench try-backend my_backend --model gpt2
"""


@click.command(epilog=_EPILOG, short_help="Write a run's winners as a package for PyTorch.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_run)
@click.option("--backend", "folder", type=click.Path(path_type=Path), required=True, metavar="DIR",
              help="The folder to write; its name is what is imported.")  # fmt: skip
@click.option("--all-correct", is_flag=True, help="Also kernels that are not faster, or were not timed, as on a CPU.")
@out_option
@json_option
def export(runs: tuple[str, ...], folder: Path, all_correct: bool, out: Path, as_json: bool) -> None:
    """Write a run's winners as a package that pip installs (docs/backend.md).

    Winners are correct and faster than the library by the lower end of their interval. A guard in front of each kernel
    lets through only calls in which it was judged; all others go to PyTorch. With several runs of one device, calls
    that judged the same text add up.
    """
    from kgbench.backend.choose import choose, left_out_lines
    from kgbench.backend.package import check_folder, package_files, package_name
    from kgbench.reports.export.folder import write
    from kgbench.store.encoding import json_text
    from kgbench.store.find import find_run
    from kgbench.store.reader import read_run

    name = package_name(folder)
    check_folder(folder)
    stored = [read_run(find_run(run, out)) for run in runs]
    chosen, left = choose(stored, all_correct=all_correct)
    if not chosen:
        reasons = "; ".join(left_out_lines(left)) or "the run has no results"
        step = "" if all_correct else "; --all-correct also takes correct kernels that are not known to be faster"
        raise UsageError("KGB195", f"no kernel to export: {reasons}{step}")
    write(package_files(name, stored, chosen, left), folder)
    if as_json:
        rows = [
            {"operator": each.operator, "problem": each.judgement.problem.id, "calls": each.calls} for each in chosen
        ]
        gone = [{"what": each.what, "why": each.why} for each in left]
        click.echo(json_text({"package": name, "operators": rows, "left_out": gone}, indent=2))
        return
    for each in chosen:
        click.echo(f"{each.operator}: {each.judgement.problem.id} of {each.judgement.result.model}")
    for line in left_out_lines(left):
        click.echo(f"left out: {line}")
    click.echo(f"{shown_path(folder)}: {len(chosen)} operators; pip install {shown_path(folder)}")
