# What a person does in this project. `make` alone lists it. PYTHON names the interpreter that makes .venv.
PYTHON ?= python3
BIN := .venv/bin
SETUP := $(PYTHON) -m tools.setup
WORKERS := $(shell expr $$(nproc) + 1) # one more than cores: much of the time a test waits for its hosts
SPREAD := -n $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder # the files one by one, the longest first
SCRIPTS := playbooks/inventory tools/language-host/pulumi-language-python # Python without a .py at its end

.DEFAULT_GOAL := help
.PHONY: help demo test lint structure bench lab labbench drill setup policy peers dali lock down clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## set up, make two nodes on this computer, train MNIST on them
	@$(SETUP)
	@$(BIN)/python -m ops.demo

test: export PYTHONDONTWRITEBYTECODE := # empty: every worker would rewrite all asserts at every run
test: ## set up, run every test this computer can run; the others say why not
	@$(SETUP) --tests
	@$(BIN)/python -m pytest -q -rs -m "not drill" $(SPREAD)

lint: ## style, types, playbooks
	@$(SETUP) --tests
	$(BIN)/ruff check . $(SCRIPTS)
	$(BIN)/ruff format --check . $(SCRIPTS)
	$(BIN)/basedpyright
	cd playbooks && PATH="$(CURDIR)/$(BIN):$$PATH" ansible-lint --offline --profile production

structure: ## the proofs of the structure, one line each (REF=main: also that plans and trained weights are main's)
	@$(SETUP) --tests
	@$(BIN)/python -m tools.structure $(if $(REF),--against $(REF))

bench: ## the comparisons behind the figures of the pages
	@$(SETUP)
	@$(BIN)/python -m training bench accuracy loop naive
	@$(BIN)/python tests/bench/plan.py

lab: ## all tests on real hosts and machines, and a table of what they reached (hours; goes on where it stopped)
	@$(SETUP) --tests
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/lab/reach.py

labbench: ## what gpu_node.yml costs on 8 and on 16 machines of the lab
	@$(SETUP) --tests
	@$(BIN)/python tests/bench/lab.py

drill: ## the long fault campaigns
	@$(SETUP) --tests --controllers
	@$(BIN)/python -m pytest -q -rs -m drill

setup: ## .venv, the engine and OpenSSH, as `demo` and `test` do first
	@$(SETUP)

policy: ## the environment of the Pulumi policy pack
	@$(SETUP) --policy-pack

peers: ## the environment of what training is compared with: timm, Hugging Face, Lightning
	@$(SETUP) --peers

dali: ## NVIDIA DALI into .venv, for jobs with data.decoder = "dali"
	@$(SETUP)
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps -r $(DALI).txt

DALI := tools/dali/requirements
HELD := numpy packaging pyyaml six typing-extensions # which requirements.txt has already
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)
TENSORFLOW := playbooks/roles/python_environment/files/tensorflow
lock: ## requirements.txt from pyproject.toml, and the locks of what has its own environment; keeps what still fits (UPGRADE=1: the newest)
	$(LOCK) --extra dev --output-file requirements.txt pyproject.toml
	$(LOCK) --output-file infra/policy_pack/requirements.txt infra/policy_pack/requirements.in
	$(LOCK) --output-file $(TENSORFLOW).txt $(TENSORFLOW).in
	$(LOCK) --output-file tools/peers/requirements.txt tools/peers/requirements.in
	$(LOCK) --constraint requirements.txt $(patsubst %,--no-emit-package %,$(HELD)) --output-file $(DALI).txt $(DALI).in

down: ## take the cluster on this computer down
	@$(BIN)/gpufleet down local --yes

# Stacks whose machines run elsewhere: only the engine's state and the keys beside it lead back to them.
OTHERS = $(filter-out local,$(basename $(notdir $(wildcard .gpufleet/pulumi/.pulumi/stacks/*/*.json))))
clean: ## down, then remove what set-up, runs and tools left in this folder
	$(if $(OTHERS),$(error still there: $(OTHERS); end each first with `gpufleet down STACK`))
	@if [ -d .gpufleet/local ]; then $(MAKE) --no-print-directory down; fi
	rm -rf .venv infra/policy_pack/.venv tools/peers/.venv .gpufleet runs .ruff_cache .hypothesis .ansible *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
