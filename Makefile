# Everything runs in .venv, which scripts/environment.py makes. Nothing but make and Python is needed beforehand.

PYTHON ?= python3
# For instance KGBENCH_TORCH='torch==2.13.0+cpu': install this torch instead of choosing one.
export KGBENCH_TORCH
# The Python below an activated .venv.
export PATH := $(subst $(CURDIR)/.venv/bin:,,$(PATH))

RUN = .venv/bin/python -m
# Three processes for CI's two cores, since a fifth of the tests' time is waiting. Tests of one group, such as those
# that need the GPU, stay in one of them. CI's machine has neighbours: what fails there runs once more, and is named.
PYTEST = $(RUN) pytest -n 3 --dist loadgroup $(if $(CI),--durations=20 --tb=short --reruns 1 --reruns-delay 5)
LINTERS = ruff importlinter mypy
ruff = $(RUN) ruff check .
importlinter = .venv/bin/python -c "from importlinter.cli import lint_imports_command as lint; lint(['--no-logo'])"
mypy = $(RUN) mypy

.PHONY: help demo results test test-all test-timing lint clean environment-demo environment-dev $(LINTERS)
.DEFAULT_GOAL := help

help:
	@echo 'make demo         install into .venv, judge some kernels that ship with kgbench, print the table'
	@echo 'make test         install into .venv, run the linters and the tests'
	@echo 'make test-all     the same with all data: every mutant, reference and exploit'
	@echo 'make test-timing  tests about times; nothing else should run on the machine'
	@echo 'make lint         ruff, import-linter and mypy'
	@echo 'make results      write RESULTS.md, results/leaderboard.html and the table in README.md from the published runs in results/'
	@echo 'make clean        remove .venv, caches and build outputs; runs/ stays'
	@echo ''
	@echo 'make demo PYTHON=python3.12 takes another Python (3.11 or newer)'

demo: environment-demo
	@$(RUN) kgbench demo

# pytest's closing line is the last one on standard output.
test: environment-dev
	@# Tests start hundreds of processes; without this each compiles kgbench anew where Python may write no bytecode.
	@$(RUN) compileall -q -j2 kgbench
	@# Before anything else runs: processor time is longer beside others.
	@[ -z "$$CI" ] || $(RUN) benchmarks.cpu_cost
	@$(MAKE) --no-print-directory -k -j3 $(LINTERS) >.venv/lint.log 2>&1 & linters=$$!; \
	$(PYTEST); tests=$$?; \
	wait $$linters; lint=$$?; cat .venv/lint.log >&2; \
	exit $$((tests ? tests : lint))

test-all: export KGBENCH_TEST_ALL = 1
test-all: test

test-timing: environment-dev
	@$(RUN) pytest -m timing

results: environment-dev
	@$(RUN) kgbench.reports.publishing.results

lint: environment-dev
	@$(MAKE) --no-print-directory -k -j3 $(LINTERS)

# A machine with a GPU, often one without a network, may lack a linter; CI may not.
$(LINTERS):
	@if [ -z "$$CI" ] && ! .venv/bin/python -c 'import $@' 2>/dev/null; then echo '$@: skipped, not on this machine'; \
	elif output=$$($($@) 2>&1); then echo '$@: passed'; \
	else echo "$$output"; echo '$@: failed'; exit 1; fi

environment-demo environment-dev:
	@for python in "$(PYTHON)" python3.11 python3.12 python3.13 python3.14; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    [ "$$python" = "$(PYTHON)" ] || echo "kgbench: $(PYTHON) is missing or older than 3.11, using $$python" >&2; \
	    exec "$$python" scripts/environment.py $(@:environment-%=%); \
	  fi; \
	done; \
	echo 'kgbench: no Python 3.11 or newer: apt install python3.11 python3.11-venv (macOS: brew install python),' \
	  'or name one: make demo PYTHON=/path/to/python3' >&2; exit 3

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
