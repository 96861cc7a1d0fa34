# Lockstep's everyday commands. They all run `make setup` first, which skips steps whose inputs have not changed.
#
#   make serve [HOST=127.0.0.1] [PORT=8000]   set up if needed, then serve at http://HOST:PORT
#        [SCIENCE=1]                          with SciPy, Numba and others for learners' code: docs/operate/packages.md
#   make test                                 set up for tests, check and test: every change must pass this
#   make test-long [PART="soak matrix"]       run the slow tests, the folders of tests/long
#     [LESSONS="dtensor each-machine"]        with the cells of some lessons, or of one on each kind of machine
#   make test-all                             make test and make test-long
#   make check                                only the static checks: style, types, import rules
#   make fix                                  fix what the style checks can fix automatically
#   make docs                                 build the documentation into app/web/docs, which the server shows at /docs/
#   make setup                                only set up
#   make lock [UPGRADE=1]                     update locks/ after a change to pyproject.toml
#   make floors [PYTEST=tests/unit/app]       test with the lowest versions that pyproject.toml allows

HOST ?= 127.0.0.1
PORT ?= 8000
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& echo "$$python" && break; done)

bin := .venv/bin
WORKERS ?= logical
pytest := $(bin)/python -m pytest
parallel := --numprocesses $(WORKERS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder
PART ?= $(patsubst PART=%,%,$(shell $(bin)/python .ci/affected_long_tests.py))
npm := PATH="$(CURDIR)/$(bin):$$PATH" npm --silent

# The tests start hundreds of processes. Without bytecode, each would compile Lockstep again.
unexport PYTHONDONTWRITEBYTECODE

checks := check-style check-types check-imports check-frontend-types check-frontend-style

.PHONY: setup serve test test-long test-all check $(checks) fix docs lock floors setup-tests need-python
.SILENT:

setup: need-python
	$(PYTHON) .ci/setup.py $(if $(filter 1,$(SCIENCE)),--science)

setup-tests: need-python
	$(PYTHON) .ci/setup.py --tests

serve: setup
	exec $(bin)/lockstep serve --host "$(HOST)" --port "$(PORT)"

# All checks run in parallel and to the end, and the output of each stays together.
check: setup-tests
	$(MAKE) --no-print-directory --jobs --keep-going --output-sync $(checks)

check-style:
	$(bin)/ruff check --quiet .
	$(bin)/ruff format --check --quiet .

check-types:
	$(bin)/mypy --no-error-summary

check-imports:
	$(bin)/lint-imports --no-logo >.venv/lockstep/imports.log || { cat .venv/lockstep/imports.log; exit 1; }

check-frontend-types:
	$(npm) run check

check-frontend-style:
	$(npm) run lint

fix: setup-tests
	$(bin)/ruff check --quiet --fix . || true # make check shows what remains
	$(bin)/ruff format --quiet .
	$(npm) run fix

test: check
	$(npm) test
	.ci/with-postgres $(pytest) $(parallel) $(PYTEST)

test-long: export LOCKSTEP_TEST_LESSONS = $(LESSONS)
test-long: setup-tests
	for part in $(PART); do test -d "tests/long/$$part" || { echo "There is no part $$part of the long tests; the parts" \
	'are: $(notdir $(patsubst %/,%,$(wildcard tests/long/*/))).' >&2; exit 1; }; done
	.ci/with-postgres $(pytest) $(parallel) $(PART:%=tests/long/%) $(PYTEST)

test-all: test test-long

# Broken links, pages outside every table of contents, and references to missing objects are errors.
docs: need-python
	$(PYTHON) .ci/setup.py --docs
	$(bin)/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky -b html \
		-d .venv/lockstep/doctrees docs app/web/docs

lock: need-python
	.ci/lock $(PYTHON) $(if $(UPGRADE),--upgrade)

floors: setup-tests
	.ci/test-lowest-versions $(PYTHON) $(PYTEST)

need-python:
	test -n "$(PYTHON)" || { echo 'Lockstep needs Python 3.11, 3.12 or 3.13 but found none. On Debian and Ubuntu, as root:' \
	'apt-get install python3 python3-venv; or name one: make $(firstword $(MAKECMDGOALS)) PYTHON=/path/to/python3.11' >&2; exit 1; }
