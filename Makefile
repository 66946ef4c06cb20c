# Everything runs in .venv, which each target makes for itself: only Python and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RAY := $(VENV)/ray
DOCS := $(VENV)/docs
BROWSER := $(VENV)/browser
INTEGRATION := $(VENV)/integration
IMITATION := $(VENV)/imitation
PLANNING := $(VENV)/planning
PIP := -m pip install --quiet --disable-pip-version-check
JOBS ?= 2
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help demo test test-ray test-integration test-browser check counts docs report-pictures studio-pictures slow fuzz bench bench-exact bench-ray bench-imitation bench-neural bench-planning dist lock clean

help:  ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/.runtime: requirements/runtime.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("journeyman needs Python 3.11 or later; try make PYTHON=python3.11") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -r requirements/runtime.txt
	$(BIN)/python $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	$(BIN)/python $(PIP) --no-deps -r requirements/dev.txt
	@touch $@

# Environments of their own, for what is large or must not meet the rest.
$(RAY)/.ready $(DOCS)/.ready $(BROWSER)/.ready: $(VENV)/%/.ready: requirements/%.txt pyproject.toml
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python $(PIP) --no-deps -r $<
	$(@D)/bin/python $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# With dependencies: where torch comes with parts of its own, the lock cannot name them all.
$(INTEGRATION)/.ready: requirements/integration.txt pyproject.toml
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python $(PIP) -r $<
	$(@D)/bin/python $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# The peers of benchmarks, which import nothing of ours.
$(IMITATION)/.ready $(PLANNING)/.ready: $(VENV)/%/.ready: requirements/%.txt
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python $(PIP) -r $<
	@touch $@

/usr/bin/chromium:
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu fonts-noto-color-emoji

demo: $(VENV)/.runtime  ## Learn from an expert on an embedded grid world and compare the two
	@mkdir -p build
	@$(BIN)/journeyman demo --report build/report.html

test: $(VENV)/.dev  ## Run all tests except the slow ones
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile

test-ray: $(RAY)/.ready  ## Run the tests of the Ray executor, in an environment of their own
	$(RAY)/bin/python -m pytest -q tests_ray

test-integration: $(INTEGRATION)/.ready  ## Run policies inside Stable-Baselines3 and Gymnasium
	$(INTEGRATION)/bin/python -m pytest -q tests_integration

test-browser: $(BROWSER)/.ready /usr/bin/chromium  ## Look at reports in a real browser (Debian's Chromium)
	$(BROWSER)/bin/python -m pytest -q tests_browser

check: $(VENV)/.dev  ## Format, lint and type checks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

counts: $(VENV)/.dev  ## Count modules, lines, public names and how they hang together
	$(BIN)/python tests/laws/source_counts.py

docs: $(DOCS)/.ready  ## Build the documentation into build/docs; warnings are errors
	$(DOCS)/bin/mkdocs build --strict

report-pictures: $(BROWSER)/.ready /usr/bin/chromium  ## Draw the pictures of reports in docs/images anew
	$(BROWSER)/bin/python examples/report_pictures.py

studio-pictures: $(BROWSER)/.ready /usr/bin/chromium  ## Draw the pictures of the studio in docs/images anew
	$(BROWSER)/bin/python -P examples/studio_pictures.py

slow: $(VENV)/.dev  ## Run the slow statistical tests
	$(BIN)/python -m pytest -q -n $(JOBS) -m slow

fuzz: $(VENV)/.dev  ## Give every reader damaged files, FUZZ_SECONDS=60 each, and tell how many
	JOURNEYMAN_FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -q -n $(JOBS) -m fuzz -rP $(FUZZ)

bench: $(VENV)/.dev  ## Print every benchmark's table
	$(BIN)/python -m benchmarks

bench-exact: $(VENV)/.dev  ## Print the table of the exact program at scale
	$(BIN)/python -m benchmarks.exact_program

bench-ray: $(RAY)/.ready  ## Print what executors cost, Ray among them
	$(RAY)/bin/python -m benchmarks.executors

bench-imitation: $(VENV)/.dev $(IMITATION)/.ready  ## Print maximum entropy beside the package imitation
	$(BIN)/python -m benchmarks.maximum_entropy

bench-neural: $(VENV)/.dev $(IMITATION)/.ready  ## Print continuous worlds beside BC, GAIL and AIRL of imitation
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.continuous_worlds --peers

bench-planning: $(VENV)/.dev $(PLANNING)/.ready  ## Print planning beside QuantEcon and pymdptoolbox
	$(BIN)/python -m benchmarks.planning

dist: $(VENV)/.dev  ## Build wheel and sdist, install the wheel elsewhere and use it
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(PYTHON) -m venv --clear $(VENV)/wheel
	$(VENV)/wheel/bin/python $(PIP) -r requirements/runtime.txt
	$(VENV)/wheel/bin/python $(PIP) --no-deps dist/*.whl
	cd dist && ../$(VENV)/wheel/bin/journeyman demo --size 6 --trajectories 20

COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --upgrade --universal --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make lock"

lock: $(VENV)/.dev  ## Renew the pinned requirements from pyproject.toml
	$(BIN)/python $(PIP) uv
	$(COMPILE) --group build -o requirements/runtime.txt
	$(COMPILE) --all-extras --group dev --excludes requirements/excluded.txt -o requirements/dev.txt
	$(COMPILE) --extra ray --group ray-tests -o requirements/ray.txt
	$(COMPILE) --extra icu --extra studio --extra gymnasium --group browser-tests --excludes requirements/excluded.txt --excludes requirements/excluded-browser.txt -o requirements/browser.txt
	$(COMPILE) --group docs -o requirements/docs.txt
	$(COMPILE) --extra gymnasium --group integration-tests --excludes requirements/excluded-integration.txt -o requirements/integration.txt
	$(subst pyproject.toml,--group planning-peers,$(COMPILE)) -o requirements/planning.txt
	$(subst pyproject.toml,requirements/imitation.in,$(COMPILE)) --excludes requirements/excluded-integration.txt -o requirements/imitation.txt

clean:  ## Remove everything that was built
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
