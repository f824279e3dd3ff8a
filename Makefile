# Every target prepares what it needs by itself: the virtual environment, the pinned tools, the native core. Stamp files
# in .venv-dev remember what is done, so a second call is quick and an edit under cpp/ rebuilds only what changed.
#
#   make test ARGS="-k connect4"     passes more arguments to what the target runs
#   make PYTHON=/path/to/python3.12  chooses the interpreter of a new .venv-dev (Python 3.10 or newer)

PYTHON ?= python3
ARGS ?=

# Not .venv, which is a user's own in his clone (docs/start.md).
VENV := .venv-dev
PY := $(VENV)/bin/python
CREATED := $(VENV)/.created
TOOLS := $(VENV)/.tools
CORE := $(VENV)/.core
PEERS_VENV := .venv-peers
PEERS := $(PEERS_VENV)/.installed

# Folders are listed too: adding or deleting a file changes its folder.
CORE_FILES := CMakeLists.txt pyproject.toml $(shell find cpp -type d -o -name '*.h' -o -name '*.cpp')
CXX_FILES = find cpp tests/cpp -name '*.h' -o -name '*.cpp'

export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell getconf _NPROCESSORS_ONLN)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test test-slow test-gpu test-ray test-ray-slow test-ray-quick test-web lint format tidy tidy-changed type stub bench bench-peers readme-table sanitize coverage golden docs docs-serve release-check all clean

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(CORE) ## make .venv-dev with the pinned development tools and windrow itself, editable

demo: $(CORE) ## train Connect-4 for three minutes, and say how strong it became
	$(PY) examples/demo.py $(ARGS)

# A file's tests stay together, so that what they share is made once; tests/conftest.py says in which order files are
# given out. More processes than four would fight over memory.
# Tests that send signals to their own process have one to themselves, without the threads of other tests' libraries.
FAST := not slow and not gpu and not ray and not browser and not site
TEST := -m pytest -n auto --maxprocesses 4 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder -m "$(FAST) and not signals"
test: $(CORE) ## run the tests (fast ones: no slow, gpu or ray marker), in as many processes as there are cores
	$(PY) $(TEST) $(ARGS)
	$(PY) -m pytest -m "$(FAST) and signals" $(or $(ARGS),$$(grep -rIl mark.signals tests)) || [ $$? -eq 5 ]

# pytest exits 5 when no test has the marker; that is not a failure.
test-slow: $(CORE) ## run the tests marked slow
	$(PY) -m pytest -m "slow and not gpu and not ray" $(ARGS) || [ $$? -eq 5 ]

test-gpu: $(CORE) ## run the tests marked gpu (needs a CUDA device)
	$(PY) -m pytest -m gpu $(ARGS) || [ $$? -eq 5 ]

test-ray: $(CORE) ## run the tests that start a Ray cluster on this machine
	$(PY) -m pytest -m "ray and not slow" $(ARGS)

# One cluster, about a minute.
test-ray-quick: $(CORE) ## run some of them: the search on a cluster
	$(PY) -m pytest -m "ray and not slow" tests/search/test_ray_engine.py $(ARGS)

test-ray-slow: $(CORE) ## run the long ones: drills, nodes that are killed
	$(PY) -m pytest -m "ray and slow" $(ARGS)

# Where no Chromium can be had, its tests are skipped, and pytest says so.
test-web: $(CORE) ## run the tests of the page in a real browser (installs Debian's chromium where it may)
	@$(PY) tests/web/web_browser.py || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		echo "installing chromium" && timeout 120 apt-get update -q >/dev/null 2>&1 && \
		DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -q -y --no-install-recommends \
		chromium fonts-dejavu-core >/dev/null 2>&1; } || \
		echo "there is no Chromium, and none can be installed here: its tests are skipped"
	$(PY) -m pytest tests/web -m "browser and not slow" -rs $(ARGS)

lint: $(TOOLS) ## check style and formatting, Python and C++
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(CXX_FILES) | xargs -r $(VENV)/bin/clang-format --dry-run -Werror

format: $(TOOLS) ## format and fix what can be fixed, Python and C++
	$(PY) -m ruff check --fix-only
	$(PY) -m ruff format
	$(CXX_FILES) | xargs -r $(VENV)/bin/clang-format -i

# clang-tidy reads how each file is compiled from the folder the core was built in last.
TIDY = $(PY) .ci/tidy.py --build $$(ls -td build/core-* | head -n 1)
tidy: $(CORE) ## check C++ names and common mistakes with clang-tidy
	$(TIDY)

tidy-changed: $(CORE) ## the same for the sources that differ from main, or from the commit before
	$(TIDY) --changed

type: $(TOOLS) ## check types in src/ (strict)
	$(PY) -m basedpyright --pythonpath $(PY) $(ARGS)

stub: $(CORE) ## regenerate src/windrow/_core.pyi from the native module
	$(PY) -m nanobind.stubgen -q -m windrow._core -o src/windrow/_core.pyi

bench: $(CORE) ## run the reference benchmark: make bench ARGS="cpu", or benchmarks by name
	$(PY) bench/suite.py $(or $(ARGS),cpu)

bench-peers: $(CORE) $(PEERS) ## run windrow beside mctx, OpenSpiel and LightZero (installs them into .venv-peers)
	$(PY) bench/suite.py $(or $(ARGS),peers)

readme-table: $(CORE) ## write the figures of bench/results into README.md and docs/benchmarks.md
	$(PY) bench/readme.py $(ARGS)

sanitize: $(TOOLS) ## run the C++ tests under ASan+UBSan, the thread pool's under TSan
	$(call cpp_tests,address)
	$(call cpp_tests,thread)

define cpp_tests
$(PY) -m cmake -S . -B build/tests-$(1) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV))/bin/ninja \
	-DCMAKE_BUILD_TYPE=Debug -DWINDROW_TESTS=$(1) -DWINDROW_WERROR=ON
$(PY) -m cmake --build build/tests-$(1)
$(VENV)/bin/ctest --test-dir build/tests-$(1) --output-on-failure --no-tests=error
endef

# What runs in processes that the tests start is not counted: workers, commands, actors.
coverage: $(CORE) ## print how many lines the fast tests (Python) and the C++ tests (the core) execute
	$(PY) $(TEST) -q --cov=windrow --cov-report= $(ARGS)
	rm -rf build/tests-coverage
	$(call cpp_tests,coverage)
	@echo "Python: the fast tests execute $$($(PY) -m coverage report --format=total) % of the lines of windrow"
	@$(PY) .ci/cpp_coverage.py build/tests-coverage

golden: $(CORE) ## rewrite the golden files; review the diff
	$(PY) -m pytest tests/golden --update-golden $(ARGS)

# Builds from what is here alone: no fonts, scripts or pictures are fetched. --strict: a link that leads nowhere fails, but
# not with --quiet, which keeps mkdocs from counting its warnings.
docs: $(CORE) ## build the documentation into build/site, every link checked
	@if $(PY) -c 'import mkdocs' 2>/dev/null; then set -ex; \
		NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict $(ARGS); \
		WINDROW_SITE=build/site $(PY) -m pytest -q -m site tests/test_site.py; \
	else echo "the tools of the site need Python 3.11 or newer: not built"; fi

docs-serve: $(TOOLS) ## serve the documentation, and build it again at every change
	$(PY) -m mkdocs serve $(ARGS)

release-check: $(TOOLS) ## build what a release would upload, and try it in an empty environment
	$(PY) .ci/release_check.py $(ARGS)

all: lint type test docs tidy-changed test-ray-quick test-web ## what CI runs

clean: ## delete everything that was built or installed here
	rm -rf $(VENV) $(PEERS_VENV) build dist .pytest_cache .ruff_cache .hypothesis src/windrow/_core*.so src/*.dist-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(CREATED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
		echo "windrow needs Python 3.10 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
		echo "Install a newer one and name it: make PYTHON=/path/to/python3 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The constraints list every package a development install needs, so they serve as requirements too.
$(TOOLS): $(CREATED) constraints.txt
	$(PY) -m pip install -q -r constraints.txt
	@touch $@

# No build isolation: the build uses the pinned tools. It keeps its folder, so that a rebuild is incremental.
$(CORE): $(TOOLS) $(CORE_FILES)
	$(PY) -m pip install -q --no-build-isolation -c constraints.txt --config-settings=build-dir=build/core-{wheel_tag} \
		--config-settings=cmake.define.WINDROW_WERROR=ON -e ".[dev]"
	@touch $@

$(PEERS): bench/peers-requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "The others need Python 3.11 or newer; name one: make PYTHON=/path/to/python3 bench-peers"; exit 1; }
	$(PYTHON) -m venv $(PEERS_VENV)
	$(PEERS_VENV)/bin/python -m pip install -q -r bench/peers-requirements.txt
	$(PEERS_VENV)/bin/python -m pip install -q --no-deps LightZero==0.2.0 || \
		echo "LightZero is left out: it has no wheel for this Python"
	@touch $@
