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

# $(call step,what it does,command): one closing line with the elapsed time; the command's own exit code decides.
step = @begin=$$(date +%s); code=0; $(2) || code=$$?; \
	echo "make: $(1): $$([ $$code = 0 ] && echo done || echo FAILED) ($$(($$(date +%s) - begin)) s)"; exit $$code

# Folders that exist, so that a verb never fails on a suite that this checkout does not hold.
tests = $(wildcard $(addprefix tests/,$(1)))

.PHONY: help setup run serve test lint types format simulation-full slow e2e bench lock clean

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
