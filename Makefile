# The commands of newcomers, developers and CI. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := benchmarks/.venv
DOCS := build/docs/.venv
SUPPLY := build/supply/.venv
PATRONI := build/patroni
FUZZER := build/fuzz/lib
READERS := build/readers/.venv
PYTHON_CLIENT := tests/clients/python/.venv
NPM_CLIENTS := tests/clients/node_modules
BROWSER := tests/browser/node_modules
VALIDATOR := tests/validator/node_modules
TEST_TOOLS := $(PYTHON_CLIENT)/test.stamp $(READERS)/readers.stamp $(NPM_CLIENTS) $(BROWSER) $(VALIDATOR)
UV := build/uv/bin/uv
MANIFESTS := $(filter-out %kustomization.yaml,$(wildcard deploy/kubernetes/*.yaml deploy/kubernetes/jobs/*.yaml))
# The certificate of an organization's proxy is only in the system's store.
export UV_SYSTEM_CERTS := true
# Container images set it to keep layers small. Here, every process that a test starts would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run quick sql pooler test regen coverage tail faults fuzz test-tools lint format docs bench dist sbom audit requirements vendored clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  make %-12s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

PORT := 8000

run: $(VENV)/run.stamp ## Start a database, load a catalogue, serve it on http://127.0.0.1:8000; PORT=8001 for another port
	@exec "$(BIN)/localidades-api" serve --port $(PORT) $(ARGS)

# More processes than cores, because they wait for servers and browsers; without the plugins that no test uses.
PYTEST = "$(BIN)/python" -m pytest -n 3 --dist loadfile --no-loadscope-reorder -p no:anyio -p no:platformdirs

test: $(VENV)/dev.stamp $(BROWSER) ## Run the tests, except the slow ones, against a real Postgres that they start
	$(PYTEST) -p no:pytest_cov -m "not tail" $(ARGS)

regen: $(VENV)/dev.stamp ## Write the golden files and recorded examples that differ, and list them
	$(PYTEST) -p no:pytest_cov --regen tests/unit/test_declarations.py tests/http/test_contract.py tests/http/test_examples.py \
		tests/names/test_golden.py
	git diff --stat -- tests/golden 'src/localidades_api/**/examples*'

coverage: $(VENV)/dev.stamp $(TEST_TOOLS) ## Run all tests and fail if coverage is below the minimum
	$(PYTEST) --cov --cov-report= --timeout 600 $(ARGS)
	"$(BIN)/coverage" report

quick: $(VENV)/dev.stamp ## Run the tests that need no Postgres: while you write
	LOCALIDADES_POSTGRES_BIN=none $(PYTEST) -p no:pytest_cov --hypothesis-profile=quick -m "not tail" tests/unit tests/names tests/bulk tests/importer/test_source.py $(ARGS)

# Stalled and aborted downloads are about connections, and need a large catalogue.
sql: $(VENV)/dev.stamp ## Run the tests that depend on SQL, for another Postgres: LOCALIDADES_POSTGRES_BIN=/usr/lib/postgresql/15/bin
	$(PYTEST) -p no:pytest_cov -m "not tail" -k "not stalled and not aborted" \
		tests/importer/test_import.py tests/importer/test_migrations.py \
		tests/importer/test_retire.py tests/http/test_changes.py tests/http/test_downloads.py \
		tests/http/test_filters.py tests/http/test_counts.py tests/http/test_nearest.py tests/http/test_releases.py tests/http/test_search.py \
		tests/http/test_sort.py tests/http/test_tiles.py \
		tests/extensions/test_outlines.py::test_points_inside_on_borders_at_sea_and_at_poles \
		tests/extensions/test_outlines.py::test_ogc_box_finds_what_its_outline_touches $(ARGS)

pooler: $(VENV)/dev.stamp ## Run two modules of tests with PgBouncer between the service and Postgres
	$(PYTEST) -p no:pytest_cov -m "not tail" --pooler transaction tests/http/test_details.py tests/http/test_fields.py

tail: $(VENV)/dev.stamp $(TEST_TOOLS) ## Run the slow tests: processes that die or hang, large files, thousands of inputs, other programs
	$(PYTEST) -p no:pytest_cov -m "tail or hypothesis" --hypothesis-profile=tail $(ARGS)

faults: $(VENV)/dev.stamp $(PATRONI)/patroni.stamp ## Stop, kill, pause and disconnect real servers under load; ARGS="--fault-seconds 60"
	$(PYTEST) -p no:pytest_cov --timeout 600 tests/faults $(ARGS)

fuzz: $(VENV)/dev.stamp $(FUZZER)/fuzz.stamp ## Change inputs at random, a minute for each reader; ARGS="workbook --seconds 3600"
	PYTHONPATH="$(FUZZER)" "$(BIN)/python" -m tests.fuzz $(ARGS)

test-tools: $(TEST_TOOLS) $(PATRONI)/patroni.stamp ## Install the tools of the slow tests: client generators, readers of files, axe, Patroni

lint: $(VENV)/dev.stamp $(BROWSER) ## Check style, types, layers, manifests, workflows and scripts
	"$(BIN)/ruff" check .
	"$(BIN)/ruff" format --check .
	"$(BIN)/mypy"
	"$(BIN)/lint-imports" --no-logo
	"$(BIN)/check-jsonschema" --builtin-schema vendor.compose-spec docker-compose.yml $(wildcard deploy/compose.*.yml)
	"$(BIN)/check-jsonschema" --builtin-schema vendor.github-workflows $(wildcard .github/workflows/*.yml)
	"$(BIN)/check-jsonschema" --builtin-schema custom.github-workflows-require-timeout $(wildcard .github/workflows/*.yml)
	"$(BIN)/check-jsonschema" --builtin-schema vendor.dependabot .github/dependabot.yml
	"$(BIN)/check-jsonschema" --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	"$(BIN)/check-jsonschema" --builtin-schema vendor.github-issue-forms $(wildcard .github/ISSUE_TEMPLATE/[0-9]*.yml)
	"$(BIN)/zizmor" --offline --persona pedantic --quiet .github
	"$(BIN)/yamllint" --strict docker-compose.yml deploy .github
	"$(BIN)/shellcheck" $(wildcard .ci/* deploy/*/*.sh)
	"$(BIN)/kubernetes-validate" --strict --quiet $(MANIFESTS)
	[ ! -d "$(BROWSER)" ] || "$(BROWSER)/.bin/oxlint" --deny-warnings src/localidades_api/html/static docs-theme
	[ ! -d "$(BROWSER)" ] || "$(BROWSER)/.bin/tsc" --project tests/browser
	"$(BIN)/hadolint" Dockerfile

format: $(VENV)/dev.stamp ## Format the code
	"$(BIN)/ruff" check --fix .
	"$(BIN)/ruff" format .

docs: build/site.stamp ## Build the site of docs/ into build/site; a broken link is an error

# The tables of the reference pages are written from the code.
build/site.stamp: $(DOCS)/docs.stamp $(VENV)/dev.stamp zensical.toml $(shell find docs docs-theme src -type f -not -path "*/__pycache__/*")
	"$(BIN)/python" docs-theme/reference.py build/reference
	"$(DOCS)/bin/zensical" build --strict --clean
	"$(DOCS)/bin/python" docs-theme/split_search.py build/site
	touch "$@"

bench: $(VENV)/run.stamp $(PEERS)/bench.stamp benchmarks/peers/fastify/node_modules ## Compare the service with other stacks; ARGS="--quick"
	@exec "$(BIN)/python" -m benchmarks $(ARGS)

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' src/localidades_api/__init__.py)

dist: $(VENV)/run.stamp ## Build into dist/ the sdists of the service and of its client, wheels from the sdists, and the npm package of the field
	rm -rf dist
	"$(BIN)/python" -m hatchling build --target sdist
	cd src && "$(abspath $(BIN))/python" -m hatchling build --target sdist --directory "$(abspath dist)"
	for sdist in dist/*.tar.gz; do \
		mkdir dist/source && tar --extract --gzip --file "$$sdist" --directory dist/source --strip-components 1 && \
		(cd dist/source && "$(abspath $(BIN))/python" -m hatchling build --target wheel --directory "$(abspath dist)") && \
		rm -r dist/source || exit 1; \
	done
	mkdir dist/package
	cp npm/README.md npm/*.d.ts LICENSE src/localidades_api/html/static/localidad-*.js dist/package
	sed 's/"version": "[^"]*"/"version": "$(VERSION)"/' npm/package.json > dist/package/package.json
	tar --create --gzip --file dist/localidad-field-$(VERSION).tgz --directory dist package && rm -r dist/package

sbom: $(SUPPLY)/supply.stamp ## List the components of a deployment: CycloneDX, build/sbom.cdx.json
	PYTHONWARNINGS=ignore "$(SUPPLY)/bin/cyclonedx-py" requirements requirements/serve.txt --pyproject pyproject.toml --mc-type application \
		--output-reproducible --validate --output-file build/sbom.cdx.json

PINNED = $(wildcard requirements/*.txt) benchmarks/requirements.txt

audit: $(SUPPLY)/supply.stamp ## Check the pinned dependencies for known vulnerabilities (needs the network)
	@rm -f build/audit.json
	@"$(SUPPLY)/bin/pip-audit" --strict --disable-pip --require-hashes --progress-spinner=off --desc=on \
		$(PINNED:%=--requirement %) --format json --output build/audit.json || { \
		if [ -s build/audit.json ]; then echo "error: Dependencies have known vulnerabilities: see build/audit.json."; \
		else echo "error: Nothing was audited: the advisory service can't be reached, or does not know a dependency."; fi >&2; \
		exit 1; }

COMPILE = "$(UV)" pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-emit-find-links --no-strip-extras

requirements: $(UV) ## Pin the newest dependencies, with hashes
	$(COMPILE) --upgrade --extra embedded --group build --group dev --output-file requirements/dev.txt
	$(COMPILE) --constraint requirements/dev.txt --extra embedded --group build --output-file requirements/run.txt
	$(COMPILE) --constraint requirements/dev.txt --output-file requirements/serve.txt
	$(COMPILE:pyproject.toml=) --constraint requirements/dev.txt --group build --output-file requirements/build.txt
	$(COMPILE:pyproject.toml=) --constraint requirements/dev.txt --group bench --output-file benchmarks/requirements.txt
	$(COMPILE:pyproject.toml=) --upgrade --group docs --output-file requirements/docs.txt
	$(COMPILE:pyproject.toml=) --upgrade --group supply --output-file requirements/supply.txt
	$(COMPILE:pyproject.toml=) --upgrade --group patroni --output-file requirements/patroni.txt
	$(COMPILE:pyproject.toml=) --upgrade --group fuzz --output-file requirements/fuzz.txt
	$(COMPILE:pyproject.toml=) --upgrade --group readers --output-file requirements/readers.txt
	$(COMPILE:pyproject.toml=) --upgrade --group uv --output-file requirements/uv.txt

vendored: $(VENV)/dev.stamp ## Update the vendored scripts of the map from npm: MapLibre and Delaunator
	cd tests/browser && npm install --save-exact maplibre-gl@latest delaunator@latest --no-audit --no-fund
	"$(BIN)/python" -m tests.browser.vendored

clean: ## Remove the virtual environment and caches; the database stays
	rm -rf "$(VENV)" build/uv "$(PEERS)" "$(DOCS)" "$(SUPPLY)" "$(READERS)" "$(PYTHON_CLIENT)" "$(NPM_CLIENTS)" "$(BROWSER)" "$(VALIDATOR)"
	rm -rf benchmarks/peers/fastify/node_modules
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# $(call sync,ENVIRONMENT,REQUIREMENTS…) installs exactly the pinned packages into an environment, and compiles them:
# otherwise each process that a test starts would compile them again.
define sync
@test -x "$(1)/bin/python" || "$(UV)" venv --quiet --python "$(PYTHON)" "$(1)"
"$(UV)" pip sync --quiet --python "$(1)" --require-hashes --compile-bytecode $(2)
endef

# Each sync removes the clone's own package, so this follows it.
INSTALL_CLONE = "$(UV)" pip install --quiet --python "$(VENV)" --no-deps --no-build-isolation --editable .

# A stamp has the time of its environment.
$(VENV)/run.stamp: requirements/run.txt pyproject.toml $(UV)
	$(call sync,$(VENV),$<)
	$(INSTALL_CLONE)
	@touch "$@"

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/run.stamp
	$(call sync,$(VENV),$<)
	$(INSTALL_CLONE)
	@touch "$@"

$(PEERS)/bench.stamp: requirements/run.txt benchmarks/requirements.txt $(UV)
	$(call sync,$(PEERS),$< benchmarks/requirements.txt)
	@touch "$@"

$(DOCS)/docs.stamp: requirements/docs.txt $(UV)
	$(call sync,$(DOCS),$<)
	@touch "$@"

$(SUPPLY)/supply.stamp: requirements/supply.txt $(UV)
	$(call sync,$(SUPPLY),$<)
	@touch "$@"

# Throw-away clients of the slow tests: exact versions, without a lock file.
$(PYTHON_CLIENT)/test.stamp: pyproject.toml $(UV)
	@test -x "$(PYTHON_CLIENT)/bin/python" || "$(UV)" venv --quiet --python "$(PYTHON)" "$(PYTHON_CLIENT)"
	"$(UV)" pip install --quiet --python "$(PYTHON_CLIENT)" --group clients
	@touch "$@"

$(READERS)/readers.stamp: requirements/readers.txt $(UV)
	$(call sync,$(READERS),$<)
	@touch "$@"

# A folder rather than an environment: root's tests run it as another user, who may not reach this clone's Python.
$(PATRONI)/patroni.stamp: requirements/patroni.txt $(VENV)/dev.stamp
	rm -rf "$(PATRONI)"
	"$(UV)" pip install --quiet --python "$(VENV)" --require-hashes --no-build-isolation --target "$(PATRONI)" -r "$<"
	@touch "$@"

$(FUZZER)/fuzz.stamp: requirements/fuzz.txt $(VENV)/dev.stamp
	rm -rf "$(FUZZER)"
	"$(UV)" pip install --quiet --python "$(VENV)" --require-hashes --target "$(FUZZER)" -r "$<"
	@touch "$@"

# Only uv itself is installed with pip.
$(UV): requirements/uv.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	"$(PYTHON)" -m venv build/uv
	@build/uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$<"
	@touch "$@"

# Without Node, the tests that need it are left out; CI has it.
$(BROWSER) $(VALIDATOR): %/node_modules: %/package-lock.json
$(NPM_CLIENTS): tests/clients/package.json
$(NPM_CLIENTS) $(BROWSER) $(VALIDATOR):
	@if command -v npm > /dev/null; then \
		npm $(if $(filter %lock.json,$<),ci,install --no-package-lock) --prefix "$(@D)" --no-audit --no-fund --loglevel=error && touch "$@"; \
	elif [ -n "$$CI" ]; then echo "CI needs Node.js 20 or newer, with npm."; exit 1; fi

benchmarks/peers/fastify/node_modules: benchmarks/peers/fastify/package-lock.json
	@command -v npm > /dev/null || { echo "make bench needs Node.js 20 or newer, with npm."; exit 1; }
	npm ci --prefix benchmarks/peers/fastify --no-audit --no-fund --loglevel=error
	@touch "$@"
