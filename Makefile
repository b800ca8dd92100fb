# One door to every check: people, pre-commit habits and CI all come through here.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
FIXTURES := tests/fixtures/seeds
AGENTS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/fairwitness-test-agents
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-real test-agents test-faults check fmt format lint types imports docs docs-write schemas sweep mutate bench lock clean test-kills

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## build .venv with fairwitness, every extra and all developer tools

$(READY): constraints.txt pyproject.toml scripts/setup
	@PYTHON=$(PYTHON) sh scripts/setup .venv

demo: setup ## a whole run with a recorded team; LIE=1 for one that lies
	@$(BIN)/fairwitness demo $(if $(LIE),--lie)

test: setup ## run all tests; branch coverage of contracts and rules must be 100 %
	$(BIN)/coverage erase
	$(BIN)/pytest -n 2 --cov=fairwitness.contracts --cov=fairwitness.rules --cov-report=
	$(BIN)/coverage report --include='src/fairwitness/contracts/*,src/fairwitness/rules/*' --fail-under=100

test-real: setup ## two published projects verified end to end (needs a registry; minutes)
	FAIRWITNESS_REAL=1 $(BIN)/pytest tests/real -p no:randomly --timeout=1800

test-agents: setup ## real agents from npm in the sandbox, with a scripted model (needs a registry; minutes)
	sh scripts/agents/install $(AGENTS)
	FAIRWITNESS_AGENTS=$(AGENTS) sh scripts/agents/offline $(BIN)/pytest tests/live -p no:randomly -n 0 --timeout=1800

check: format lint types imports test docs ## everything CI runs

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

docs: setup ## fail when a generated page no longer tells the truth
	$(BIN)/python scripts/docs.py --check

docs-write: setup ## write the generated pages anew
	$(BIN)/python scripts/docs.py

schemas: setup ## export JSON Schemas; a published version is never overwritten
	$(BIN)/fairwitness schema export schemas

sweep: setup ## the long tests: full-size concurrency, every crash point, every lie on a red base (minutes)
	FAIRWITNESS_FULL=1 $(BIN)/pytest -n 2 --timeout=1800 tests/ledger tests/store tests/db tests/engine tests/verify tests/dag

test-kills: setup ## Runs of forge and autopilot killed at every point, a dozen times each (about an hour).
	FAIRWITNESS_CHAINS=1 $(BIN)/pytest -n 2 --timeout=1800 -rP tests/forge/test_kills.py tests/autopilot/test_kills.py

test-faults: setup ## a feature run killed at 150 points, malformed documents and bad agents at every role (an hour)
	FAIRWITNESS_FULL=1 $(BIN)/pytest -n 2 --timeout=1800 tests/feature tests/runs/feature tests/forge

mutate: ## mutation testing of some rules: make mutate RULES="gates review"
	@sh scripts/mutate $(RULES)

bench: setup ## print ratios against named baselines (not part of check)
	$(BIN)/python -m bench

lock: ## pin every version with hashes in constraints.txt (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	  --no-header --upgrade --all-extras --group dev pyproject.toml -o constraints.txt

clean: ## remove .venv and every cache
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
