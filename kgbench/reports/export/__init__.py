"""A run in other shapes: tidy data, other benchmarks' result files, continuous integration, a citation. Torch-free.

One file per format, each a function of a report and a stream; which name of ``--format`` stands for which is the table
in ``kgbench/cli/report.py``. What is in the files, and what is not, says ``docs/data.md``.
"""
