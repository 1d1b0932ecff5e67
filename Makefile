# Two lines are the whole set-up: `make diagnose` and `make test`. Both make the environment .venv first, from .ci/environment.py.
# `make wheel` and `make site` have small environments of their own.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Where a container image sets it, each of the thousands of programs that the tests start would compile the whole tool anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
NPROC ?= 4
MINUTES ?= 30
RUN := .venv/bin
PYTEST := $(RUN)/python -m pytest
# Four workers on two cores: most of a test that starts ranks is waiting, for a rank that hangs or for torch to be read from the disk.
PARALLEL ?= -n 4 --dist worksteal

.PHONY: help
help: ## Show this list.
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: environment
environment:
	@$(PYTHON) .ci/environment.py

.PHONY: environment-dev
environment-dev:
	@$(PYTHON) .ci/environment.py --dev

.PHONY: diagnose
diagnose: environment ## Examine this machine: trainprobe diagnose --nproc 4 (NPROC=8 for more ranks).
	@$(RUN)/trainprobe diagnose --nproc $(NPROC)

.PHONY: test
test: lint types docs-check ## Everything that a change must pass: linters, types, layers, docs, tests.
	$(PYTEST) $(PARALLEL) -rR -m "not soak"

.PHONY: lint
lint: environment-dev ## Style, format and the layers of the design.
	$(RUN)/ruff check --quiet .
	$(RUN)/ruff format --quiet --check .
	@echo $(RUN)/lint-imports; said=$$($(RUN)/lint-imports --no-cache) || { echo "$$said"; exit 1; }

.PHONY: types
types: environment-dev ## mypy --strict.
	$(RUN)/mypy --no-error-summary
	$(RUN)/mypy --no-error-summary --python-version 3.11 .ci

.PHONY: format
format: environment-dev ## Put the code into the agreed format.
	$(RUN)/ruff check --quiet --fix .
	$(RUN)/ruff format --quiet .

.PHONY: docs
docs: environment-dev ## Write the generated pages of docs/.
	$(RUN)/python docs/generate.py

.PHONY: docs-check
docs-check: environment-dev
	$(RUN)/python docs/generate.py --check

.PHONY: coverage
coverage: environment-dev ## Branch coverage of what needs no ranks.
	$(PYTEST) -n 2 -m "not soak and not torch" --cov --cov-report=term

.PHONY: soak
soak: environment-dev ## Healthy runs in a row: nobody may be blamed (minutes).
	$(PYTEST) -m soak

.PHONY: fuzz
fuzz: environment-dev ## Changed inputs for every reader (MINUTES=30), secrets end to end, kills at random moments.
	$(RUN)/python -m tests.trust.fuzz --minutes $(MINUTES) --failed .fuzz
	$(RUN)/python -m tests.trust.measure
	$(RUN)/python -m tests.trust.live
	$(RUN)/python -m tests.trust.kills

.PHONY: bench
bench: environment-dev ## Start-up, the cost of a rung, the time of an attach, the reading of logs and of dumps, 2,048 ranks, a prolog, the page, lint; against their limits.
	$(RUN)/python tests/bench/startup.py
	$(RUN)/python tests/bench/rung_cost.py
	$(RUN)/python tests/bench/attach.py
	$(RUN)/python tests/bench/logs.py
	$(RUN)/python tests/bench/dumps.py
	$(RUN)/python tests/bench/gather.py
	$(RUN)/python tests/bench/prolog.py
	$(RUN)/python tests/bench/page.py
	$(RUN)/python tests/bench/lint.py

.PHONY: bench-dumps
bench-dumps: environment-dev ## Reading 1,024 to 16,384 dumps of 200 entries, against bare unpickling (minutes, 2.5 GB).
	$(RUN)/python tests/bench/dumps.py --dumps 1024 4096 16384 --entries 200

.PHONY: accuracy
accuracy: environment-dev ## Live: some 480 jobs, broken and healthy, each looked at by attach (an hour; goes on where it stopped).
	$(RUN)/python -m pip install --quiet --requirement .ci/pins-accuracy.txt
	$(RUN)/python -m tests.gallery.live.run
	$(RUN)/python -m tests.gallery.live.replay --from .accuracy --keep
	$(RUN)/python docs/generate.py

.PHONY: accuracy-replay
accuracy-replay: environment-dev ## Judge the recorded runs again and write docs/accuracy.md (a minute).
	$(RUN)/python -m tests.gallery.live.replay
	$(RUN)/python docs/generate.py

.PHONY: accuracy-logs
accuracy-logs: environment-dev ## Explain every case of logs and write docs/accuracy.md (a minute).
	$(RUN)/python -m tests.gallery.logs.score --keep
	$(RUN)/python docs/generate.py

.PHONY: small
small: environment-dev ## Live: the field cases, broken and mended, found at small size (half an hour).
	$(RUN)/python -m pip install --quiet --requirement .ci/pins-accuracy.txt
	$(RUN)/python -m tests.gallery.small.run
	$(RUN)/python docs/generate.py

.PHONY: climbs
climbs: environment-dev ## Live: the climb over a Trainer, a Lightning and a plain DDP script (half an hour).
	$(RUN)/python -m pip install --quiet --requirement .ci/pins-accuracy.txt
	$(RUN)/python -m tests.gallery.climbs.run

.PHONY: nodes
nodes: environment-dev ## Live: faults planted in the nodes and links of a real SLURM, and a hundred healthy runs (hours).
	$(RUN)/python -m tests.gallery.nodes.score --runs 3 --healthy 100
	$(RUN)/python docs/generate.py

.PHONY: isolation
isolation: environment-dev ## The search for a bad node, simulated to 1,024 nodes, against two other ways (minutes).
	$(RUN)/python -m tests.gallery.isolation.run
	$(RUN)/python docs/generate.py

.PHONY: wheel
wheel: ## Build dist/*.whl and dist/*.tar.gz, the same bytes each time; without torch.
	@$(PYTHON) .ci/environment.py --build
	@rm -rf dist
	@.venv-build/bin/python -m hatchling build
	@cd dist && sha256sum *

.PHONY: try-wheel
try-wheel: wheel ## Install dist/*.whl and dist/*.tar.gz into empty environments of every Python here, and use them (minutes).
	$(PYTHON) .ci/try_wheel.py

.PHONY: site
site: ## Build the documentation as a site: site/index.html.
	@$(PYTHON) .ci/environment.py --site
	@NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --strict

# The tools of a release stand in an environment of their own: they are none of ours, and pinned by hash as well.
.release/tools: .ci/locked-release.txt
	$(MAKE) environment-dev
	$(RUN)/python -m virtualenv --quiet $@
	$@/bin/python -m pip install --quiet --require-hashes --requirement .ci/locked-release.txt
	@touch $@

.PHONY: audit
audit: .release/tools ## Ask PyPI for known weaknesses of each pinned package; what it does not know fails.
	.release/tools/bin/pip-audit --strict --disable-pip --require-hashes --requirement .ci/locked.txt --requirement .ci/locked-dev.txt

.PHONY: sbom
sbom: wheel .release/tools ## Write dist/sbom.cdx.json: what an installation of the wheel brings along (CycloneDX).
	rm -rf .release/installed
	$(RUN)/python -m virtualenv --quiet .release/installed
	.release/installed/bin/python -m pip install --quiet --constraint .ci/pins.txt dist/*.whl
	.release/installed/bin/python -m pip uninstall --quiet --yes pip
	.release/tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-format JSON --output-file dist/sbom.cdx.json .release/installed/bin/python

.PHONY: clean
clean: ## Remove the environments and what was built.
	rm -rf .venv .venv-build .venv-site .release dist build site .mypy_cache .ruff_cache .pytest_cache
