# Every check goes through here: people, pre-commit habits and CI run the same commands.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# tests wait for processes a third of their time, so three share two cores
WORKERS ?= 3
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=20 --durations-min=1
AGENTS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/fairwitness-test-agents
SOAK ?= /var/tmp/fairwitness-soak
QUICK := tests/rules tests/contracts tests/kit tests/cli/test_columns.py tests/cli/test_feature_screen.py \
  tests/cli/test_autopilot_screen.py tests/app/test_feature_look.py tests/app/test_verify_outputs.py
# the unit tests of contracts and rules cover all their branches; measuring takes as long as testing, so only they do
COVERING := tests/rules tests/contracts tests/dag src/fairwitness/contracts src/fairwitness/rules
SLICE ?= $(shell sh scripts/slice-number)
SLICE_SECONDS ?= 240
# without bytecode every process compiles the package and the tests anew: twice the time
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup demo quick test check fmt format lint types imports dead docs docs-write schemas full slice costs \
  sweep soak test-kills test-faults test-agents test-real mutate bench bench-retries lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## build .venv with fairwitness, every extra and all developer tools

$(READY): constraints.txt pyproject.toml scripts/setup
	@PYTHON=$(PYTHON) sh scripts/setup .venv

demo: setup ## run a whole feature with a recorded team; LIE=1 for a team that lies
	@$(BIN)/fairwitness demo $(if $(LIE),--lie)

quick: setup ## test rules, contracts, readers and command texts (30 s): run it at every save
	$(BIN)/pytest -n 2 -q $(QUICK)

test: setup ## test everything a change can break, a sample of each family (5 min)
	$(PYTEST)

check: setup ## run everything that CI runs (20 min)
	$(MAKE) --jobs=2 --output-sync format lint types imports dead docs
	$(MAKE) full slice

full: setup ## test at full width; branch coverage of contracts and rules must be 100 %
	$(BIN)/coverage erase
	FAIRWITNESS_WIDTH=full $(PYTEST) --cov=fairwitness.contracts --cov=fairwitness.rules --cov-report= $(COVERING)
	$(BIN)/coverage report --include='src/fairwitness/contracts/*,src/fairwitness/rules/*' --skip-covered -m --fail-under=100
	FAIRWITNESS_WIDTH=full $(PYTEST) $(addprefix --ignore=,$(COVERING))

slice: setup ## run a tenth of the sweeps, chosen by the commit (5 min); SLICE=3 repeats one
	@FAIRWITNESS_SLICE=$(SLICE) FAIRWITNESS_SLICE_SECONDS=$(SLICE_SECONDS) $(PYTEST) -p no:randomly --dist load --maxschedchunk=1 \
	  --timeout=900 -q || { echo "slice $(SLICE) failed; repeat it with: make slice SLICE=$(SLICE)" >&2; exit 1; }

costs: setup ## measure what tests cost, one case of each function, and write tests/costs.json (30 min)
	FAIRWITNESS_COSTS=1 $(BIN)/pytest -n 2 -q -p no:randomly --dist loadfile --timeout=1800
	$(BIN)/python scripts/costs.py

sweep: setup ## run every case of every family except the kill and fault sweeps (an hour)
	FAIRWITNESS_WIDTH=sweep $(PYTEST) --timeout=1800 --ignore=tests/feature --ignore=tests/forge --ignore=tests/autopilot

soak: setup ## disturb runs of the three demos on one Postgres; a part continues the last: MINUTES=5 SEED=1 FINISH=1
	PYTHONPATH=tests nice -n 10 $(BIN)/python -m soak --folder $(SOAK) --minutes $(or $(MINUTES),5) \
	  --seed $(or $(SEED),1) $(if $(FINISH),--finish)

test-kills: setup ## kill runs of forge and autopilot at every point, a dozen times each (an hour)
	FAIRWITNESS_WIDTH=sweep $(PYTEST) --timeout=1800 -rP -k "in_turn" tests/forge/test_kills.py tests/autopilot/test_kills.py

test-faults: setup ## kill a feature run at 150 points; malformed documents and bad agents at every role (an hour)
	FAIRWITNESS_WIDTH=sweep $(PYTEST) --timeout=1800 tests/feature tests/runs/feature tests/forge

test-agents: setup ## run real agents from npm in the sandbox with a scripted model (needs a registry; 10 min)
	sh scripts/agents/install $(AGENTS)
	FAIRWITNESS_AGENTS=$(AGENTS) sh scripts/agents/offline $(BIN)/pytest tests/live -p no:randomly -n 0 --timeout=1800

test-real: setup ## verify two published projects end to end (needs a registry; 6 min)
	FAIRWITNESS_REAL=1 $(BIN)/pytest tests/real -p no:randomly --timeout=1800

bench-retries: setup ## count second attempts that succeed with and without the retry material (needs a registry; 10 min)
	$(BIN)/python scripts/retry_experiment.py $(PROJECTS)

fmt: setup ## format the code in place
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

format: setup
	$(BIN)/ruff format --check .

lint: setup
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports --no-cache

dead: setup ## fail when code that nothing uses is not on the allow list
	$(BIN)/vulture

docs: setup ## fail when a generated page differs from the code
	$(BIN)/python scripts/docs.py --check

docs-write: setup ## write the generated pages
	$(BIN)/python scripts/docs.py

schemas: setup ## export JSON Schemas; a published version is never overwritten
	$(BIN)/fairwitness schema export schemas

mutate: ## test some rules by mutation: make mutate RULES="gates review"
	@sh scripts/mutate $(RULES)

bench: setup ## print ratios against named baselines (not part of check)
	$(BIN)/python -m bench

lock: ## pin every version with hashes in constraints.txt (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	  --no-header --upgrade --all-extras --group dev pyproject.toml -o constraints.txt

clean: ## remove .venv and every cache
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
