# Every verb prepares what it needs; `make help` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PORT ?= 8080
DATA ?= data
# What pytest gets on top, for example: make test PYTEST="-k trigger"
PYTEST ?=
SIM_SEEDS ?= 50000
PIP := -m pip --quiet --disable-pip-version-check --no-input

# What pytest exits with when a marker selects nothing.
NO_TESTS := 5

# $(call step,what it does,command): one closing line with the elapsed time, and the end of the recipe if it failed.
step = begin=$$(date +%s); code=0; $(2) || code=$$?; \
	echo "make: $(1): $$([ $$code = 0 ] && echo done || echo FAILED) ($$(($$(date +%s) - begin)) s)"; \
	[ $$code = 0 ] || exit $$code

# Folders that exist, so that a verb never fails on a suite that this checkout does not hold.
tests = $(wildcard $(addprefix tests/,$(1)))

.PHONY: help setup run serve test examples lint types format simulation-full slow e2e browser schema-fuzz bench bench-cost lock clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## make .venv with the pinned dependencies and Ductor itself (does nothing when it is up to date)

$(STAMP): pyproject.toml requirements.lock
	@begin=$$(date +%s)
	python=
	for candidate in "$${PYTHON:-}" python3.13 python3.12 python3.11 python3; do
	  [ -n "$$candidate" ] || continue
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi
	done
	if [ -z "$$python" ]; then
	  echo "make: Ductor needs Python 3.11 or newer, and none was found. Install one, or name it: make setup PYTHON=/path/to/python3" >&2
	  exit 1
	fi
	if ! "$$python" -c 'import venv, ensurepip' 2>/dev/null; then
	  version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	    echo "make: installing the venv module of Python $$version"
	    { apt-get -qq update && { apt-get -qq -y install "python$$version-venv" || apt-get -qq -y install python3-venv; }; } >/dev/null
	  else
	    echo "make: Python $$version has no venv module. On Debian or Ubuntu: sudo apt-get install python$$version-venv" >&2
	    exit 1
	  fi
	fi
	log=$$(mktemp); trap 'rm -f "$$log"' EXIT
	attempt() { "$$@" >"$$log" 2>&1 || { cat "$$log" >&2; echo "make: setup failed at: $$*" >&2; exit 1; }; }
	"$(BIN)/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || attempt "$$python" -m venv --clear $(VENV)
	attempt "$(BIN)/python" $(PIP) install --no-deps -r requirements.lock
	attempt "$(BIN)/python" $(PIP) install --no-deps --no-build-isolation -e .
	touch $@
	echo "make: setup: done ($$(($$(date +%s) - begin)) s, $$("$(BIN)/python" --version))"

run: setup ## start Ductor on port 8080 and take the hello world to its result; stays up until Ctrl-C
	@exec $(BIN)/ductor serve --data $(DATA) --port $(PORT) --demo

serve: setup ## start Ductor on port 8080; stays up until Ctrl-C
	@exec $(BIN)/ductor serve --data $(DATA) --port $(PORT)

test: setup ## unit, contract, API, function and small simulation tests
	@$(call step,tests,$(BIN)/pytest -q -n auto --dist loadgroup $(call tests,unit contract api functions simulation) $(PYTEST))

lint: setup ## ruff (rules and format) and the import contracts
	@$(call step,ruff check,$(BIN)/ruff check --quiet)
	$(call step,ruff format,$(BIN)/ruff format --check --quiet)
	$(call step,import contracts,$(BIN)/lint-imports --no-logo)

format: setup ## write the format that lint asks for, and fix what ruff can fix
	@$(BIN)/ruff check --quiet --fix-only && $(BIN)/ruff format --quiet

types: setup ## mypy, strict
	@$(call step,types,$(BIN)/mypy --no-error-summary shared/ductor $(wildcard tests))

simulation-full: setup ## the simulation over SIM_SEEDS seeds on all cores
	@$(call step,simulation over $(SIM_SEEDS) seeds,DUCTOR_SIM_SEEDS=$(SIM_SEEDS) $(BIN)/pytest -q -n auto -m full tests/simulation $(PYTEST))

examples: setup ## check the examples in events/ and play their tests
	@$(call step,definitions,$(BIN)/ductor workflow validate events >/dev/null)
	$(call step,tests of the examples,$(BIN)/ductor test events)

slow: setup ## the tests that take more than a few seconds
	@$(call step,slow tests,$(BIN)/pytest -q -n auto -m "slow and not full and not e2e" tests $(PYTEST) || [ $$? = $(NO_TESTS) ])

e2e: setup .tools/sam/.ready .tools/emulator/.ready ## tests against a server, and a stack on an emulator, that they start
	@log=$$(mktemp); trap 'kill $$! 2>/dev/null || true; rm -f "$$log"' EXIT
	suite() { $(BIN)/pytest -q -m e2e "$$@" $(PYTEST) || [ $$? = $(NO_TESTS) ]; }
	# What is deployed mostly waits; so the other suites run meanwhile.
	both() { suite $(call tests,contract e2e); begun=$$?; wait $$! || begun=1; cat "$$log"; return $$begun; }
	suite $(call tests,deployed) >"$$log" 2>&1 &
	$(call step,end-to-end tests,both)

browser: setup ## tests that click through the web console; needs Chromium
	@$(call step,console in a browser,$(BIN)/pytest -q -n auto -m browser $(call tests,console) $(PYTEST) || [ $$? = $(NO_TESTS) ])

lint-template: setup .tools/sam/.ready .tools/security/.ready ## sam validate, cfn-lint and the security lint over template.yaml
	@export SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=us-east-1
	$(call step,sam validate,.tools/sam/bin/sam validate --lint >/dev/null)
	$(call step,cfn-lint,.tools/sam/bin/cfn-lint template.yaml)
	$(call step,checkov,.tools/security/bin/checkov --config-file .checkov.yaml)

# Heavy tools, each in an environment of its own, of the interpreter that .venv has.
.tools/%/.ready: tools/%.txt $(STAMP)
	@begin=$$(date +%s)
	"$(BIN)/python" -m venv --clear .tools/$*
	.tools/$*/bin/python $(PIP) install -r tools/$*.txt
	touch $@
	echo "make: tools for $*: done ($$(($$(date +%s) - begin)) s)"

# Beside the virtual environment's own packages: nothing else needs it, and set-up stays short.
FUZZ := $(VENV)/fuzz
FUZZ_VERSION := 4.32.5

$(FUZZ)/bin/st: | $(STAMP)
	@$(BIN)/python -m venv $(FUZZ) && $(FUZZ)/bin/python $(PIP) install 'schemathesis==$(FUZZ_VERSION)'

schema-fuzz: setup $(FUZZ)/bin/st ## fuzz a local server along its OpenAPI document, two minutes
	@$(call step,schema fuzzing,$(BIN)/python -m tests.e2e.schema_fuzz $(FUZZ)/bin/st)

bench: setup ## measure speed and memory; prints a table and stores JSON in bench-results
	@$(BIN)/python -m tests.benchmarks

bench-cost: setup ## meter every AWS request of some workloads; prints what a million steps cost, by service
	@$(BIN)/python -m tests.benchmarks.cost

lock: ## pin every dependency anew in requirements.lock, with pip alone
	@begin=$$(date +%s)
	fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT
	python=$${PYTHON:-python3}
	"$$python" -m venv "$$fresh"
	"$$fresh/bin/python" $(PIP) install -e '.[dev]' 2>"$$fresh/log" || { cat "$$fresh/log" >&2; exit 1; }
	{
	  echo '# Every package that Ductor runs on and is developed with, pinned. Made by `make lock`: a new virtual environment,'
	  echo "# pip install -e '.[dev]', pip freeze --all --exclude-editable --exclude pip. Installs on Python 3.11 to 3.13."
	  "$$fresh/bin/python" -m pip freeze --all --exclude-editable --exclude pip
	} >requirements.lock.new
	mv requirements.lock.new requirements.lock
	echo "make: lock: done ($$(($$(date +%s) - begin)) s, $$(grep -c == requirements.lock) packages)"

clean: ## remove .venv, caches and build output; keeps the data folder
	@rm -rf $(VENV) .tools .aws-sam build dist shared/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find shared tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
	echo "make: clean: done"
