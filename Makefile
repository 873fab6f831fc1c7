# Two commands do everything: `make demo` and `make test`. Each target sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
.DEFAULT_GOAL := help

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

.PHONY: help demo test stress lint docs bench clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: $(READY)  ## a front on real digits beside the linear baseline, with tables, a figure and a page, in out/demo
	rm -rf out/demo
	$(BIN)/paretomtl compare multi-digits --methods pareto-mtl,linear --seeds 1 --out out/demo --fronts
	$(BIN)/paretomtl report out/demo/fronts/pareto-mtl-0 out/demo/fronts/linear-0 --out out/demo/report.html

test: $(READY)  ## everything that must hold: lint, types, layers, docs, tests
	$(MAKE) -j2 --output-sync lint docs
	$(BIN)/python -m pytest -n 2 --dist worksteal

stress: $(READY)  ## what the tests sample, in full; counts are stored in stress/results
	set -e; for script in stress/*.py; do PYTHONPATH=tests $(BIN)/python $$script; done

lint: $(READY)  ## style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)  ## the documentation, in out/docs; a broken reference is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky docs out/docs

bench: $(READY)  ## speed and accuracy beside peers, stored in benchmarks/results
	$(BIN)/python benchmarks/min_norm.py
	$(BIN)/python benchmarks/step.py
	$(BIN)/python benchmarks/front.py

clean:  ## remove what the other targets made
	rm -rf .venv out
