# Two commands: `make demo` and `make test`. The work is done by scripts/bootstrap.py; nothing but Python is needed.

PYTHON ?= python3
# For instance KGBENCH_TORCH='torch==2.13.0+cpu': install this torch instead of choosing one.
export KGBENCH_TORCH

.PHONY: help demo test lint clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo    install into .venv, judge the kernels that ship with kgbench, print the table per source'
	@echo 'make test    install into .venv, lint, run the whole test suite'
	@echo 'make lint    ruff, mypy and import-linter only'
	@echo 'make clean   remove .venv, caches and build outputs; runs/ stays'
	@echo ''
	@echo 'make demo PYTHON=python3.12 takes another Python (3.11 or newer)'

demo test lint:
	@command -v "$(PYTHON)" >/dev/null || { echo 'kgbench: no $(PYTHON) here: apt install python3 python3-venv' >&2; exit 3; }
	@"$(PYTHON)" scripts/bootstrap.py $@

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
