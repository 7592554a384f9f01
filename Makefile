# The two commands of the README: `make run` and `make test`. Both make .venv from the lock file first. `make demo-model`
# is the same with a real model on this machine.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# The other viewers that `rectom export` writes for: with them the tests open the exports, without them they skip that.
VIEWERS := $(or $(RECTOM_VIEWERS),.venv-viewers)
# What `make run` evaluates: Hi-ToM's file, or stories made on the spot; and by which model: a scripted one that answers
# by rule, or the one named here, at OPENAI_BASE_URL.
DATA   ?= $(RECTOM_DATA)
MODEL  ?=
# The small open model of `make demo-model`, where MODEL names no other: it is downloaded.
SMALL  := qwen2.5-coder-1.5b

.PHONY: install viewers local run demo-model test lint format lock clean

install: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

viewers: $(VIEWERS)/.installed

$(VIEWERS)/.installed: requirements-viewers.lock
	$(PYTHON) -m venv $(VIEWERS)
	$(VIEWERS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-viewers.lock
	@touch $@

run: install
	@$(if $(MODEL),,$(BIN)/python -m tests.fake_openai --) \
	  $(BIN)/rectom run $(if $(DATA),hitom/400 --data $(DATA),fresh/400) --model $(or $(MODEL),scripted)
	@$(if $(MODEL),,echo "(The scripted model answers by rule and never errs: this shows the machinery, not a model's skill.)")

local: $(VENV)/.local

$(VENV)/.local: $(VENV)/.installed requirements-local.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-local.lock
	@touch $@

# MODEL is a GGUF file, or a model that `rectom run --model` takes.
demo-model: local
	@$(if $(MODEL),,$(BIN)/rectom models get $(SMALL))
	@$(if $(DATA),,$(BIN)/rectom data get hitom)
	@$(if $(DATA),RECTOM_DATA=$(DATA)) $(BIN)/rectom sweep experiments/demo.toml \
	  --model $(if $(wildcard $(MODEL)),local:)$(or $(MODEL),local:$(SMALL))
	@$(BIN)/python -m webbrowser -t "file://$(CURDIR)/runs/demo/index.html" > /dev/null || true

# Compiled modules are kept, whatever the shell says: the tests start the program many times.
test: install
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Resolve for every platform and Python that the project supports; commit the result.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --extra dev --custom-compile-command 'make lock' -o requirements.lock pyproject.toml requirements.build
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --custom-compile-command 'make lock' -o requirements-viewers.lock requirements-viewers.in
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --custom-compile-command 'make lock' -o requirements-local.lock requirements-local.in

clean:
	rm -rf $(VENV) .venv-viewers .mypy_cache .ruff_cache build dist
