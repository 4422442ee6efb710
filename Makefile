# The same commands for people and for CI. Every target makes the environment that it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.demo-ready
# The documentation as a site needs an environment of its own, and nothing else does.
SITE_VENV := .venv-site
SITE_READY := $(SITE_VENV)/.ready
# uv, where there is none on PATH: tools/environment.py puts one there.
UV := $(or $(shell command -v uv),.venv-uv/bin/uv)
# When this began: the demo says how long it took with its set-up.
BEGAN := $(shell date +%s)
# How many times as fast as the sizes of models expect a machine is on which the corpus is recorded.
SPEED ?= 1
# Whole jobs mostly wait (for a start, a sample, a checkpoint), so three tests at once keep two cores busy.
SLOW := -m "slow and not kubernetes" -n 3 --dist worksteal

# Any Python can say that it is too old.
CHECK := import sys; v=sys.version_info[:2]; sys.exit(0 if (3,11)<=v<=(3,13) else "make needs Python 3.11 to 3.13 (TensorFlow has no wheels beyond); this is %d.%d. Try: make PYTHON=python3.11 ..." % v)
LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet

PYTEST = $(BIN)/python -m pytest
FAST := -m "not slow and not kubernetes" -n 4 --dist worksteal

# The images: REGISTRY/paceline and REGISTRY/paceline-agent, of the version in pyproject.toml, on top of BASE.
REGISTRY ?= localhost
BASE ?= docker.io/library/python:3.12-slim
BUILDER ?= $(or $(shell command -v podman || command -v buildah || command -v docker),podman)
BUILD_OPTIONS ?=
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

# Tests start hundreds of Pythons, and each would compile all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-fast test-slow soak nightly e2e e2e-versions e2e-queues e2e-conformance cgroup-v2 screenshots check bench bench-peers bench-diagnosis bench-diagnosis-unchanged docs site lock image format clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

# All that tests, checks and benchmarks need; the demo's part of it is in the environment then, too.
$(READY): requirements.lock requirements-uv.lock pyproject.toml
	@$(PYTHON) -c '$(CHECK)'
	@$(PYTHON) tools/environment.py $(VENV) requirements.lock
	@touch $(DEMO_READY) $@

# What `paceline demo` imports, and no more: it is there in seconds.
$(DEMO_READY): requirements-demo.lock requirements-uv.lock pyproject.toml
	@$(PYTHON) -c '$(CHECK)'
	@$(PYTHON) tools/environment.py $(VENV) requirements-demo.lock
	@touch $@

demo: $(DEMO_READY) ## a slow job over 2 PS and 2 workers, why it is slow, and what makes it fast: demo-out/
	@$(BIN)/paceline demo --output demo-out --began $(BEGAN)

test: $(READY) ## all tests, those that start TensorFlow included
	$(PYTEST) $(FAST)
	$(PYTEST) $(SLOW) --durations=20

test-slow: $(READY) ## only those that start TensorFlow, whole jobs or a browser
	$(PYTEST) $(SLOW) --durations=20

test-fast: $(READY) ## only the tests that run in seconds
	$(PYTEST) $(FAST)

soak: $(READY) ## test-fast ten times and test once, two runs at once; goes on where it was cut off (hours)
	$(BIN)/python tests/soak.py

nightly: $(READY) ## test with all examples, seeds, widths and kill loops, coverage; each Kubernetes, queues (hours)
	$(BIN)/python tests/nightly.py

e2e: $(READY) ## tests on a Kubernetes cluster: that of KUBECONFIG, one by kind, or ../shared/ground
	tests/kubernetes/with-cluster $(abspath $(BIN))/python -m pytest -m kubernetes --durations=8

# The versions of Kubernetes that Paceline supports, as ../shared/ground builds them.
KUBE_VERSIONS := 1.34.4 1.35.4 1.36.3 1.37.2
e2e-versions: $(KUBE_VERSIONS:%=e2e-%) ## e2e on each supported version of Kubernetes; builds them on ../shared/ground

e2e-%: $(READY)
	KUBE_VERSION=$* tests/kubernetes/with-cluster $(abspath $(BIN))/python -m pytest -m kubernetes

e2e-queues: $(READY) ## tests with real queues (Kueue, Volcano, the gangs of the scheduler) on ../shared/ground; builds them
	WITH="kueue volcano" PART=cp tests/kubernetes/with-cluster $(abspath $(BIN))/python -m pytest -m kubernetes \
	  --durations=8 tests/kubernetes/test_kueue.py tests/kubernetes/test_volcano.py
	FEATURES="GenericWorkload=true" APISERVER_FLAGS="--runtime-config=scheduling.k8s.io/v1beta1=true" PART=cp \
	  tests/kubernetes/with-cluster $(abspath $(BIN))/python -m pytest -m kubernetes tests/kubernetes/test_gangs.py

e2e-conformance: $(READY) ## forty TFJobs under Kubeflow's own operator and under ours, on ../shared/ground; builds it
	WITH=kubeflow PART=cp tests/kubernetes/with-cluster $(abspath $(BIN))/python -m pytest -m kubernetes \
	  tests/kubernetes/test_conformance.py

cgroup-v2: $(READY) ## tests of cgroups under version 2: here, or in a virtual machine of ../shared/ground
	tests/engines/with-cgroup-v2

screenshots: $(READY) ## pictures of every page, in each language, theme and width: screenshots/ (needs Chromium)
	mkdir -p screenshots
	PACELINE_SCREENSHOTS=$(abspath screenshots) $(BIN)/python -m pytest --nightly tests/surfaces/web/browsers/test_pages.py

check: $(READY) ## formatting, lint, types, import order, words, names
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/words.py
	$(BIN)/python tools/names.py

bench: $(READY) ## every benchmark, in full (long; each resumes where it stopped)
	$(BIN)/python -m benchmarks all
	PART=cp HOLLOW_NODES=20 tests/kubernetes/with-cluster $(abspath $(BIN))/python -m benchmarks kubernetes

bench-peers: $(READY) ## the same job beside Kubeflow's operator, Volcano and Kueue, on ../shared/ground (an hour)
	mkdir -p bench-out
	printf 'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n' \
	  > bench-out/audit-policy.yaml
	PACELINE_AUDIT_LOG=$(abspath bench-out)/audit.log WITH="kueue volcano kubeflow" PART=cp HOLLOW_NODES=20 \
	  KWOK_FLAGS="--config $(abspath benchmarks)/hollow-pods.yaml" \
	  APISERVER_FLAGS="--audit-policy-file=$(abspath bench-out)/audit-policy.yaml --audit-log-path=$(abspath bench-out)/audit.log" \
	  tests/kubernetes/with-cluster $(abspath $(BIN))/python -m benchmarks peers $(OPTIONS)

bench-diagnosis: $(READY) ## the corpus of diagnosis: record what is missing (hours; SPEED=2 on a fast machine), then score it
	$(BIN)/python -m benchmarks.diagnosis.corpus --speed $(SPEED)
	$(BIN)/python -m benchmarks diagnosis

bench-diagnosis-unchanged: $(READY) ## the same of unchanged scripts (2 hours; needs tests/instrumentation/fetch-tensorflows)
	$(BIN)/python -m benchmarks.diagnosis_unchanged.corpus --speed $(SPEED)
	$(BIN)/python -m benchmarks diagnosis-unchanged

docs: $(READY) ## the pages that are made from code and results
	$(BIN)/python -m benchmarks figures
	$(BIN)/python -m paceline.surfaces.cli.pages docs/cli.md
	$(BIN)/python -m paceline.linting.pages > docs/lint-rules.md
	$(BIN)/python -m paceline.surfaces.cause_pages docs/causes
	$(BIN)/python -m paceline.surfaces.cure_pages docs/cures
	$(BIN)/paceline --quiet schema --crd > deploy/kustomize/trainingjobs.yaml
	cp deploy/kustomize/trainingjobs.yaml deploy/helm/paceline/crds/
	cp deploy/monitoring/rules.yaml deploy/monitoring/*.json deploy/helm/paceline/monitoring/

$(SITE_READY): requirements-site.lock requirements-uv.lock
	@$(PYTHON) -c '$(CHECK)'
	@$(PYTHON) tools/environment.py $(SITE_VENV) requirements-site.lock
	@touch $@

site: $(SITE_READY) ## the documentation as a site with search: site/index.html; a dead link is an error
	$(SITE_VENV)/bin/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky --conf-dir docs . site
	@echo "site/docs/index.html"

lock: ## pin what pyproject.toml allows (with the uv on PATH, or a uv that make has fetched)
	$(UV) pip compile pyproject.toml --all-extras --group dev $(LOCK) --output-file requirements.lock
	$(UV) pip compile pyproject.toml --extra demo --constraint requirements.lock $(LOCK) \
	  --output-file requirements-demo.lock
	$(UV) pip compile --group uv $(LOCK) --output-file requirements-uv.lock
	$(UV) pip compile --group site $(LOCK) --output-file requirements-site.lock

image: ## the images that a cluster needs, with podman, buildah or docker (REGISTRY=, BASE=, BUILD_OPTIONS=)
	$(BUILDER) build $(BUILD_OPTIONS) --build-arg BASE=$(BASE) -f Containerfile -t $(REGISTRY)/paceline:$(VERSION) .
	$(BUILDER) build $(BUILD_OPTIONS) --target agent -f Containerfile -t $(REGISTRY)/paceline-agent:$(VERSION) .

format: $(READY) ## format and mend what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove everything that make made
	rm -rf $(VENV) $(SITE_VENV) .venv-uv site demo-out bench-out screenshots .soak .nightly .coverage dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
