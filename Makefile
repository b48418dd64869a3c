# Everything a person or CI runs. `make demo` and `make test` need only Python >= 3.11, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

ENCRYPTION_TESTS := tests/storage/test_encryption.py tests/storage/test_text_index.py tests/storage/test_db.py

.PHONY: demo hub-demo test faults lint bench docs dist binary release clean
.DEFAULT_GOAL := help

help:  ## what can be run
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 16

$(VENV)/quaid: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Quaid needs Python 3.11 or newer; say which with make PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip || echo "(an older pip: its commands start a little slower)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/dev: $(VENV)/quaid
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/quaid  ## a sample memory, ten questions to it, and the tools that agents see
	@$(BIN)/python examples/demo.py

hub-demo: $(VENV)/dev  ## one PostgreSQL, two hub processes and three laptops share pages, in temporary folders
	@$(BIN)/python examples/hub_demo.py

test: $(VENV)/dev  ## all tests
	@$(BIN)/python -m pytest -n auto --dist worksteal
	@if test -f .cache/encryption/installed; then .cache/encryption/bin/python -m pytest -n auto $(ENCRYPTION_TESTS); \
	else echo "NOT RUN: the tests of encrypted memories need another apsw; .ci/encryption installs it"; fi

faults: $(VENV)/dev  ## the long fault tests and one table (SHARE=0.1 for a tenth; CASE='test_kill.py::test_…@17' for one)
	@QUAID_LONG=1 QUAID_SHARE='$(SHARE)' QUAID_CASE='$(CASE)' $(BIN)/python -m pytest '$(patsubst %@$(lastword $(subst @, ,$(CASE))),%,tests/faults/$(CASE))' $(if $(CASE),,tests/hub/test_simulation.py) $(FAULTS)

lint: $(VENV)/dev  ## ruff, mypy (strict, tests too) and the lint for prose
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/python docs/prose.py

bench: $(VENV)/dev  ## every figure, one table each, and docs/benchmarks.md
	@$(BIN)/python -m bench --page

docs: $(VENV)/quaid  ## write the generated pages again
	@$(BIN)/python docs/generate.py

dist: $(VENV)/dev  ## wheel and sdist in dist/, each tried out, with SHA-256
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	@$(BIN)/python delivery/dist.py dist

binary: dist  ## one executable in dist/ with everything inside, tried out, with SHA-256 (Linux; needs cc and zlib)
	@$(BIN)/python delivery/binary.py dist/quaid_memory-*.whl dist/quaid
	@$(BIN)/python delivery/smoke.py binary dist/quaid

release: $(VENV)/dev  ## dist and binary, built twice and compared, with checksums, a bill of materials and the steps to publish
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	@$(BIN)/python delivery/release.py dist

clean:  ## remove what can be made again
	@rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache
