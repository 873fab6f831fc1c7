# Two commands do everything: `make demo` and `make test`. Each target sets up .venv by itself, without root.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
READY_DEMO := .venv/ready-demo
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup
.DEFAULT_GOAL := help

# The demo needs a third of what developers need; `make test` installs the rest into the same environment.
$(READY_DEMO): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "Creating the environment .venv"; $(PYTHON) -m venv .venv; }
	@echo "Installing what the demo needs: about 40 packages, 1.3 GB with the CPU build of torch; this takes minutes"
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[cli,indicators,figures,report,digits]'
	@touch $@

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "Creating the environment .venv"; $(PYTHON) -m venv .venv; }
	@echo "Installing what developers need: about 140 packages, 2.4 GB with the CPU build of torch; this takes minutes"
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $(READY_DEMO) $@

.PHONY: help demo test test-isa stress lint docs bench clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: $(READY_DEMO)  ## a front on real digits beside the linear baseline, with tables, a figure and a page, in out/demo
	@rm -rf out/demo
	@echo "Training two fronts of five models on handwritten digits: about a minute"
	@$(BIN)/paretomtl compare multi-digits --methods pareto-mtl,linear --seeds 1 --out out/demo --fronts
	@echo "Writing the page"
	@$(BIN)/paretomtl report out/demo/fronts/pareto-mtl-0 out/demo/fronts/linear-0 --out out/demo/report.html
	@echo "Done. Look at out/demo/report.html in a browser; the figure is out/demo/compare.png."

test: $(READY)  ## everything that must hold: lint, types, layers, docs, tests
	$(MAKE) -j2 --output-sync lint docs
	$(PYTEST)

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
