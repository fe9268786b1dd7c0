"""Exports of a run: tidy data, other benchmarks' result files, continuous integration, a citation. Torch-free.

One file per format, each a function of a report and a stream; the table in ``kgbench/cli/report_output.py`` has the
names of ``--format``. ``docs/data.md`` says what is in the files.
"""
