# Every target sets up what it needs first (scripts/setup.sh) and is quick the second time.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format oracle goldens families bench fuzz clean
SHELL := /bin/sh

PY := .venv/bin/python
BOARD ?= cortex-a53
C_FILES := $(shell find runtime_c tests benchmarks -name '*.[ch]' 2>/dev/null)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## install system packages (apt) and the Python package into .venv
	@scripts/setup.sh test

demo: ## build the example model for BOARD (cortex-a53), run three prompts under QEMU, verify
	@scripts/setup.sh demo
	@scripts/demo.sh $(BOARD)

test: lint ## lint and all tests
	@$(PY) -m pytest -n 2 --dist worksteal -q

lint: ## ruff, mypy, clang-format
	@scripts/setup.sh test
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --quiet .
	@$(PY) -m mypy
	@.venv/bin/clang-format --dry-run -Werror $(C_FILES)

format: ## rewrite Python and C in the house style
	@scripts/setup.sh test
	@$(PY) -m ruff check --fix --quiet .
	@$(PY) -m ruff format --quiet .
	@.venv/bin/clang-format -i $(C_FILES)

oracle: ## compare with transformers (a large download), make the goldens anew and fail if they differ
	@scripts/setup.sh oracle
	@$(PY) -m pytest -q tests/oracle/test_oracle.py
	@$(PY) -m pytest -n 2 --dist worksteal -q tests/oracle --ignore tests/oracle/test_oracle.py

goldens: ## rewrite tests/golden from transformers and the reference
	@scripts/setup.sh oracle
	@PYTHONPATH=tests $(PY) tests/oracle/make_goldens.py --write

families: ## rewrite docs/families.md: every family's configurations against transformers
	@scripts/setup.sh oracle
	@PYTHONPATH=tests $(PY) tests/oracle/make_family_table.py

bench: ## measure beside llama.cpp, write benchmarks/results/ (over an hour the first time; BENCH="--quick --only decode")
	@scripts/setup.sh bench
	@$(PY) benchmarks/run.py $(BENCH)

fuzz: ## compare every tokenizer with the tokenizers library on COLIBRI_FUZZ_STRINGS (100000) random strings
	@scripts/setup.sh test
	@COLIBRI_FUZZ_STRINGS=$${COLIBRI_FUZZ_STRINGS:-100000} $(PY) -m pytest -q tests/tokenizer -k "fuzz or library or published"

clean: ## remove what was built (not .venv)
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache
