# All names here are an interface: scripts, CI and people call them.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CACHE ?= $(or $(GATEWAY_API_OPENSTACK_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/gateway-api-openstack)
TOOLS := hack/tool.sh
GATEWAY_API_CRDS = $(shell go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard
# One OpenStack release of test/stack: trixie, forky or bookworm.
export RELEASE ?= trixie
TEST_FLAGS ?=
# Numbers of Gateways of "make bench-scale", and where its report goes.
SIZES ?= 10,100,1000
PUBLISH ?=
# How much of test/robustness "make robustness" plays.
SCHEDULES ?= 10000
TIME ?=
FIRST_SEED ?=
SEED ?=

##@ First steps
.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show the controller at work on an embedded cloud; KEEP=1 leaves it running.
	@hack/demo.sh

.PHONY: test
test: ## Unit, golden, property, scenario, contract (simulator) and envtest tests with the race detector.
	@cd test/conformance && go test -timeout 5m ./...
	@assets=$$(hack/kube-assets.sh) && KUBEBUILDER_ASSETS=$$assets go test -race -timeout 30m $(TEST_FLAGS) ./...

.PHONY: robustness
robustness: ## 10,000 random schedules of changes, faults and crashes; SCHEDULES=n, TIME=5m and FIRST_SEED=n choose others, SEED=n replays one.
	@out=$$(mktemp); trap 'rm -f "$$out"' EXIT; go test -c -o "$$out" ./test/robustness && cd test/robustness && \
	GATEWAY_API_OPENSTACK_SCHEDULES=$(SCHEDULES) GATEWAY_API_OPENSTACK_TIME=$(TIME) \
	GATEWAY_API_OPENSTACK_FIRST_SEED=$(FIRST_SEED) GATEWAY_API_OPENSTACK_SEED=$(SEED) "$$out" -test.v -test.timeout 0

.PHONY: build
build: ## Build the binaries into bin/.
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

##@ Checks
.PHONY: verify
verify: lint generated tidy-check chart-check monitoring-check ## Lint; generated code, golden files and docs are current; the tree is clean.

.PHONY: lint
lint: ## gofmt, go vet, golangci-lint with the import rules, shell syntax.
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "not gofmt-ed: $$unformatted" >&2; exit 1; }
	go vet ./...
	$(TOOLS) golangci-lint run --allow-parallel-runners ./...
	cd test/conformance && ../../$(TOOLS) golangci-lint run --allow-parallel-runners --config ../../.golangci.yml --build-tags conformance ./...
	@for script in $$(git ls-files | xargs grep -lE '^#!.*(bash|sh)$$' 2>/dev/null); do bash -n "$$script" || exit 1; done

.PHONY: generated
generated: ## Fail when generated code or golden files differ from what is committed.
	@before=$$(git status --porcelain; git diff | sha256sum); $(MAKE) --no-print-directory generate golden >/dev/null; \
	after=$$(git status --porcelain; git diff | sha256sum); \
	[ "$$before" = "$$after" ] || { echo "generated files were not current; they are now, commit them:" >&2; git status --short >&2; exit 1; }

.PHONY: tidy-check
tidy-check: ## Fail when go.mod or go.sum are not tidy.
	go mod tidy -diff
	cd test/conformance && go mod tidy -diff

.PHONY: chart-check
chart-check: ## Lint and render the Helm chart.
	@test/chart/static.sh

.PHONY: monitoring-check
monitoring-check: ## Check alerts and dashboard against the metrics that the controller has.
	cd hack/monitoring && go test -count=1 ./...

.PHONY: generate
generate: ## Generate deepcopy functions and CRDs.
	$(TOOLS) controller-gen object paths=$(CURDIR)/api/...
	$(TOOLS) controller-gen crd paths=$(CURDIR)/api/... output:crd:artifacts:config=$(CURDIR)/config/crd
	@hack/chart-files.sh

.PHONY: golden
golden: ## Rewrite all golden files; read the difference before you commit it.
	go test ./internal/compile/... ./internal/plan/... ./test/scenario/... -update

.PHONY: screenshots
screenshots: ## Take the pictures of the page of kubectl octavia ui for the docs (needs Chromium).
	@hack/screenshots.sh

##@ Release
.PHONY: release
release: ## Build everything of a release into dist/: binaries, OCI layout, chart, evidence, checksums. SIGNING_KEY=FILE signs with an SSH key.
	cd hack/release && go run . -root $(CURDIR) -out $(CURDIR)/dist $(if $(SIGNING_KEY),-signing-key $(abspath $(SIGNING_KEY)))

.PHONY: release-check
release-check: ## Build a release twice, from two clones, and fail when a byte differs.
	@hack/release-check.sh

##@ Measure
.PHONY: bench
bench: ## Calls and time against Octavia's own for 1 to 200 rules, and the speed of compile, plan and route (about 5 minutes).
	GATEWAY_API_OPENSTACK_BENCH=1 go test -count=1 -v -run Ratios ./test/bench
	go test -run '^$$' -bench . -benchtime 5x ./internal/compile ./internal/plan ./internal/route

.PHONY: bench-scale
bench-scale: ## Memory, CPU, calls and latencies with 10, 100 and 1,000 Gateways, and bursts; SIZES=10,100 for fewer; PUBLISH=1 writes docs/scale.
	@assets=$$(hack/kube-assets.sh) && KUBEBUILDER_ASSETS=$$assets GATEWAY_API_OPENSTACK_SCALE=$(SIZES) \
	GATEWAY_API_OPENSTACK_SCALE_PUBLISH=$(if $(PUBLISH),$(CURDIR)/docs/scale) go test -count=1 -v -timeout 8h $(TEST_FLAGS) ./test/bench/scale

##@ The real stack (root; network namespaces on this machine)
.PHONY: stack-up
stack-up: ## Bring up real Kubernetes and real OpenStack, joined.
	@test/stack/stack up

.PHONY: stack-status
stack-status: ## Show what of the stack runs.
	@test/stack/stack status

.PHONY: stack-logs
stack-logs: ## Print the ends of all logs of the stack.
	@test/stack/stack logs

.PHONY: stack-down
stack-down: ## Take the stack down: no process and no namespace is left.
	@test/stack/stack down

.PHONY: e2e
e2e: ## End-to-end tests on the real stack, which is brought up when it is not running.
	@test/e2e/run.sh

.PHONY: chart
chart: ## Install, upgrade, roll back and remove the Helm chart on the stack.
	@test/chart/run.sh

.PHONY: contract
contract: ## Run the contract suite against the real cloud of the stack.
	@test/contract/run.sh

.PHONY: conformance
conformance: ## Run the Gateway API conformance suite on the real stack, native and with the responder; writes docs/conformance.
	@PUBLISH=1 test/conformance/run.sh

.PHONY: conformance-claimed
conformance-claimed: ## Run what has to pass of that suite with the responder; writes nothing.
	@CLAIMED_ONLY=1 test/conformance/run.sh responder

.PHONY: conformance-sample
conformance-sample: ## Run a sample of these tests that has each claimed feature, as the gate does; writes nothing.
	@CLAIMED_ONLY=1 ONLY=sample test/conformance/run.sh responder
