# Two commands do everything: `make demo` and `make test`. Each target sets up .venv by itself, without root.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
READY_DEMO := .venv/ready-demo
# One process more than cores: some tests wait for a browser or for other processes.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadgroup
QUICK := not study and not system
# Tests run in an order that this seed draws: a new one for each commit, which repeats itself.
ORDER ?= $(shell git log -1 --format=%h 2>/dev/null || echo 0)
export ORDER
# Where rounding decides: other instructions add in another order.
NUMERICAL := $(addprefix tests/, core methods problems diagnosis front engine paper/test_synthetic.py) \
	$(addprefix tests/training/, preflight/test_checks.py shards/test_run.py run/test_checkpoint.py \
	test_backward.py test_fit.py test_numerics.py)
# Where tests share most with others in their process: figures, the current folder, terminals, imports.
SHARING := $(addprefix tests/, report cli compare runs tools _support)
.DEFAULT_GOAL := help

# The demo needs less than developers do; `make test` installs the rest into the same environment.
$(READY_DEMO): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "Creating the environment .venv"; $(PYTHON) -m venv .venv; }
	@echo "Installing what the demo needs: 45 packages, 1.4 GB with the CPU build of torch; this takes minutes"
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[cli,indicators,figures,report,digits]'
	@touch $@

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "Creating the environment .venv"; $(PYTHON) -m venv .venv; }
	@echo "Installing what developers need: 120 packages, 2.4 GB with the CPU build of torch; this takes minutes"
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $(READY_DEMO) $@

.PHONY: help demo test test-order test-studies test-system test-isa test-avx2 test-plain stress lint docs bench clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: $(READY_DEMO)  ## three fronts on real digits: auto, interior weights and Pareto MTL, with tables, a figure and a page, in out/demo
	@rm -rf out/demo
	@echo "Training three fronts of five models on handwritten digits; this takes minutes, too"
	@$(BIN)/paretomtl compare multi-digits --methods auto,linear,pareto-mtl --seeds 1 --out out/demo --fronts
	@echo "Writing the page"
	@$(BIN)/paretomtl report out/demo/fronts/auto-0 out/demo/fronts/linear-0 out/demo/fronts/pareto-mtl-0 --out out/demo/report.html
	@echo "Done. Look at out/demo/report.html in a browser; the figure is out/demo/compare.png."

test: $(READY)  ## what must hold: lint, types, layers, docs, tests
	$(MAKE) -j2 --output-sync lint docs
	$(PYTEST) -m '$(QUICK)'

# The numerical tests have two more orders in test-avx2 and test-plain.
test-order: $(READY)  ## tests of figures, commands and files again, in two more random orders
	for other in b c; do ORDER=$(ORDER)$$other $(PYTEST) $(SHARING) -m '$(QUICK)' || exit; done

test-studies: $(READY)  ## whole studies, though small, and whole data sets, which take longer than tests should
	$(PYTEST) -m study

test-system: $(READY)  ## Ray, torchrun, processes that are killed, what takes a browser longest
	$(PYTEST) -m system

test-isa: test-avx2 test-plain  ## the numerical tests again, with the instructions of older CPUs

test-avx2: $(READY)  # without AVX-512
	ORDER=$(ORDER)b ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 $(PYTEST) $(NUMERICAL) -m '$(QUICK)'

test-plain: $(READY)  # torch's kernels without vector instructions
	ORDER=$(ORDER)c ATEN_CPU_CAPABILITY=default $(PYTEST) $(NUMERICAL) -m '$(QUICK)'

stress: $(READY)  ## what the tests sample, in full; counts are stored in stress/results
	set -e; for script in stress/*.py; do PYTHONPATH=tests $(BIN)/python $$script; done

lint: $(READY)  ## style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/structure.py --check

# All pages are written each time: a Sphinx that writes some forgets the search words of the others.
docs: $(READY)  ## the documentation, in out/docs; a broken reference is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky --write-all docs out/docs

# Stored results are replaced on purpose only: make bench BENCH_OUT=benchmarks/results
BENCH_OUT ?= out/bench
bench: $(READY)  ## benchmarks that fit a CPU, three hours on two cores, into out/bench (or BENCH_OUT=FOLDER)
	@mkdir -p $(BENCH_OUT)
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/startup.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/reading.py --out $(BENCH_OUT)
	$(BIN)/torchrun --standalone --nproc-per-node 2 benchmarks/distributed.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/dual.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/shards.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/units.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/front.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/page.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/layouts.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/verdicts.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/interior.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/gaps.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/cheaper.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/budget.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/ray_workers.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/min_norm.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/weigh_every.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/regions.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/auto.py --out $(BENCH_OUT)
	$(BIN)/python benchmarks/step.py --out $(BENCH_OUT)

clean:  ## remove what the other targets made
	rm -rf .venv out
