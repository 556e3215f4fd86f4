# jobstream. "make" alone lists what there is.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
MAKEFLAGS += --no-print-directory

CACHE    ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/jobstream
LINT      = $(CACHE)/bin/golangci-lint-v2.15.0
CONTROLLER_GEN = $(CACHE)/bin/controller-gen-v0.21.0
GREMLINS  = $(CACHE)/bin/gremlins-v0.6.0
LONG      = JOBSTREAM_LONG=1 # see internal/dev/size
SEEDS    ?= 2000
MINUTES  ?= 10
GIVE_WAY  = nice -n 10 # for what computes beside unit, whose servers must answer in time
ROOMY     = GOGC=800 # for what computes without waiting: a fifth faster, for some hundred MiB more

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ See it run

.PHONY: demo
demo: controlplane ## start everything, run real Jobs, kill the reconciler in the middle, show it all live, print a summary, stop
	@go run ./cmd/dev demo

.PHONY: dev
dev: controlplane ## start everything and keep it up; prints what to type in another terminal
	@go run ./cmd/dev up

.PHONY: build
build: ## build the binaries into bin/
	@go build -trimpath -o bin/ ./cmd/jobstream ./cmd/trigger ./cmd/reconciler ./cmd/dev ./cmd/kubectl-jobstream
	@ln -sf kubectl-jobstream bin/kubectl_complete-jobstream # what the Tab key offers

.PHONY: krew
krew: ## VERSION=v0.1.0 BASE=https://…: archives of kubectl jobstream and the manifest to install it by krew, in bin/krew/
	@go run ./deploy/krew -version='$(VERSION)' -base='$(BASE)'

##@ Check it

# Stages, each a target of its own: docs/testing.md. Those that are joined by + run at the same time, because unit mostly waits.
# chaos-short and e2e keep two cores busy, and hostile measures how long a neighbour waits: they run alone.
STAGES = go run ./internal/dev/stages -times=$(CACHE)/stages.json

.PHONY: test
test: ## every layer in its short form: lint, unit, sim, fuzz, chaos-short, hostile, e2e; "make -k test" goes on after a failure
	@$(STAGES) lint unit+sim+fuzz-short chaos-short hostile e2e

.PHONY: test-long
test-long: ## the same tests in their long forms: unit-long, sim-long, fuzz, e2e-long, chaos
	@$(STAGES) unit-long sim-long fuzz e2e-long chaos

.PHONY: check
check: ## the quick inner loop: vet, unit tests, scripts, a few simulated worlds, the contract
	@go vet ./...
	@go test -short -p 4 ./cmd/... ./internal/app/... ./api/... ./events/... ./functions/... ./internal/engine/... # the first two wait most
	@go test ./internal/sim -seeds=500
	@go test ./internal/sim/schedules -seeds=100
	@go test -C test ./contract

.PHONY: lint
lint: $(LINT) ## golangci-lint: the import arrows and the house rules; words that ADR 33 has replaced
	@go run ./internal/dev/words
	@$(LINT) run ./...
	@cd test && $(LINT) run ./...

$(LINT):
	@echo "building golangci-lint (once, about two minutes)"
	@mkdir -p $(CACHE)/bin
	@GOBIN=$(CACHE)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(lastword $(subst -, ,$(LINT)))
	@mv $(CACHE)/bin/golangci-lint $(LINT)

# What starts no goroutines has no races (internal/dev/stages checks that): these run without the race detector, ten times as fast.
# unit-long has them run under it, too.
# The others mostly wait for servers, so a few more tests run at once than there are cores. With more of them, or beside the compiler
# with equal rights, an answer takes the seconds after which jobstream, as it should, no longer waits for it.
# SHUFFLE=on runs the tests of each package in an order that is drawn, as CI does: go never caches that.
ORDER = $(if $(SHUFFLE),-shuffle=$(SHUFFLE))
PURE = ./api/... ./events/... ./functions/... ./internal/sim ./internal/sim/schedules ./internal/sim/script ./internal/sim/worldtest \
	./internal/progress ./internal/kubectl/backfill ./internal/kubectl/doctor ./internal/kubectl/history ./internal/kubectl/list \
	./internal/kubectl/next ./internal/kubectl/overview ./internal/kubectl/replay ./internal/kubectl/rerun ./internal/kubectl/run \
	./internal/kubectl/why

.PHONY: unit
unit: controlplane $(CONTROLLER_GEN) ## unit, law, script, bus and adapter tests; under the race detector where there are goroutines
	@go test $(ORDER) -timeout 60m $(PURE); pure=$$?; \
		go test $(ORDER) -race -p 2 -parallel 4 -toolexec "$(GIVE_WAY)" -timeout 60m $$(go list ./... | grep -vxF "$$(go list $(PURE))") && exit $$pure

.PHONY: unit-long
unit-long: controlplane $(CONTROLLER_GEN) ## all of unit under the race detector, in the long form
	@$(LONG) go test -shuffle=on -race -p 4 -count=1 -timeout 60m ./...

.PHONY: sim
sim: ## SEEDS=2000 simulated worlds from a fresh random base
	@# 100,000 worlds of each take two processors half an hour; the limit is for worlds that never end, on slow machines, too
	@$(ROOMY) $(GIVE_WAY) go test ./internal/sim ./internal/sim/schedules -count=1 -timeout 5h -v -run TestWorlds -seeds=$(SEEDS) | grep -v '^=== '

.PHONY: sim-long
sim-long: ## ten times as many worlds, of which every row of docs/conformance.md is expected
	@$(MAKE) sim SEEDS=20000

FUZZTIME ?= 1m

.PHONY: fuzz
fuzz: ## FUZZTIME=1m of fuzzing for each decoder of what others write; what breaks one is kept in testdata/fuzz
	@grep -rHoE '^func Fuzz[A-Za-z]+' --include='*_test.go' api bus events functions internal | while IFS=: read -r file fuzz; do \
		go test ./$$(dirname $$file) -run '^$$' -fuzz "^$${fuzz#func }$$" -fuzztime $(FUZZTIME) -parallel $(or $(FUZZERS),2) </dev/null || exit 1; done

.PHONY: fuzz-short
fuzz-short: ## a thousand inputs of it for each
	@# A count, since a time may end in "context deadline exceeded" with nothing found before Go 1.27 (go.dev/issue/75804)
	@$(GIVE_WAY) $(MAKE) fuzz FUZZTIME=1000x FUZZERS=1

.PHONY: mutants
mutants: ## plant deliberate bugs and see which the simulator finds
	@$(ROOMY) go run ./internal/sim/mutants

.PHONY: mistakes
mistakes: controlplane ## plant the thirty mistakes of ADR 36, one at a time, and see whether the tests find each
	@$(ROOMY) go run ./internal/sim/mutants -mistakes

# ONLY is a package of internal/dev/mutation/packages.txt, REF a git revision.
MUTATION = $(ROOMY) go run ./internal/dev/mutation -gremlins=$(GREMLINS)

.PHONY: mutation
mutation: $(GREMLINS) ## change one operator at a time and see whether the tests notice; ONLY=functions/job, MOST=100 of each package, or all for hours
	@$(MUTATION) -most=$(or $(MOST),0) $(ONLY)

.PHONY: mutation-diff
mutation-diff: $(GREMLINS) ## the same for the lines that differ from REF=main
	@$(MUTATION) -diff=$(or $(REF),main) $(ONLY)

$(GREMLINS):
	@mkdir -p $(CACHE)/bin
	@GOBIN=$(CACHE)/bin go install github.com/go-gremlins/gremlins/cmd/gremlins@$(lastword $(subst -, ,$(GREMLINS)))
	@mv $(CACHE)/bin/gremlins $(GREMLINS)

E2E = go test -C test -count=1 -timeout 2h $$(go list -C test ./... | grep -v '/test/chaos$$\|/test/hostile$$')

.PHONY: e2e
e2e: controlplane ## end to end: real API server, real JetStream, real processes as Pods
	@$(E2E)

.PHONY: e2e-long
e2e-long: controlplane ## the same in the long form: more completions, more inputs, more minutes; fewer tests at once
	@$(LONG) $(E2E) -parallel 4

.PHONY: hostile
hostile: controlplane ## what tenants and clients of the bus can do to a peaceful neighbour, and how much slower he gets
	@go test -C test -count=1 -timeout 60m ./hostile

CHAOS = go test -C test -count=1 -v ./chaos

.PHONY: chaos
chaos: controlplane ## MINUTES=10 of work while everything breaks, then an independent checker; SEED=n draws the same again
	@$(CHAOS) -timeout 0 -run '^TestChaos$$' -args -minutes=$(MINUTES) $(if $(SEED),-seed=$(SEED))

.PHONY: chaos-short
chaos-short: controlplane ## two minutes of chaos, and the tests of its checker
	@$(CHAOS) -timeout 60m

.PHONY: chaos-mutants
chaos-mutants: controlplane ## break the code in three ways: the checker must go red each time, and only then
	@go run -C test ./chaos/mutants

RESULTS = $(CACHE)/results

.PHONY: conformance
conformance: controlplane ## run the tests that docs/conformance.md names, and write it if all pass
	@mkdir -p $(RESULTS)
	@go test -count=1 -json ./functions/... ./internal/app ./internal/cluster/act ./internal/engine >$(RESULTS)/unit.json || true
	@go test -count=1 -json -timeout 60m ./internal/sim -run TestWorlds -seeds=$(SEEDS) >$(RESULTS)/sim.json || true
	@go test -C test -count=1 -json -timeout 2h ./e2e ./oracle ./differential >$(RESULTS)/e2e.json || true
	@go run -C test ./conformance $(RESULTS)/unit.json $(RESULTS)/sim.json $(RESULTS)/e2e.json

##@ Measure it

# The folder of bench.json, in which every measurement is; SCALE=0.1 is for a try-out; SVG=docs/performance-ratios.svg plots the ratios.
OUT ?= $(CURDIR)/.cache/bench
COMPARE = go run -C test/bench ./compare $(if $(ONLY),-only='$(ONLY)') $(if $(LIMITS),-limits='$(LIMITS)') $(if $(SCALE),-scale=$(SCALE)) $(if $(SVG),-svg="$(abspath $(SVG))") -out='$(OUT)'

.PHONY: bench
bench: controlplane ## ROUNDS=5 pairs, the built-in Job controller and jobstream: how fast, and what it costs; ONLY=one,storm, LIMITS=unlimited,default,100,5ms,20ms
	@$(COMPARE) -rounds=$(or $(ROUNDS),5)

.PHONY: bench-large
bench-large: controlplane ## the same with one Job of 100,000 Pods, a pair unless ROUNDS says more (an hour)
	@$(COMPARE) -rounds=$(or $(ROUNDS),1) -only=large -limits=unlimited

PROFILES ?= $(CURDIR)/.cache/profiles

.PHONY: profile
profile: controlplane ## ONLY=storm: 20 s of what trigger, reconciler and nats-server do under it, into PROFILES=.cache/profiles
	@$(COMPARE) -rounds=1 $(if $(LIMITS),,-limits=unlimited) -profile='$(PROFILES)'

IDLE ?= 50000

.PHONY: bench-schedules
bench-schedules: controlplane ## IDLE ScheduledJobs that are not due: what jobstream needs meanwhile (half an hour)
	@go run -C test/bench ./schedules -idle=$(IDLE)

.PHONY: bench-scale
bench-scale: controlplane ## 1, 3, 2 and 1 reconcilers under 2,000 facts a second; 1 and 4 far from their API server (8 minutes)
	@go run -C test/bench ./scale

.PHONY: bench-replay
bench-replay: ## 100,000 public events, read by a new subscriber in one go (a minute)
	@go run -C test/bench ./replay

PODS ?= 100000

.PHONY: bench-pods
bench-pods: controlplane ## PODS Pods: the trigger's memory, and small Jobs beside one of so many Pods (half an hour)
	@go run -C test/bench ./pods -pods=$(PODS)

# MINUTES has another default here than in chaos.
.PHONY: bench-cluster
bench-cluster: controlplane ## SCALE=0.1 of 150,000 Pods and 50,000 hourly schedules at rest, MINUTES=11: what all of it would cost (half an hour)
	@go run -C test/bench ./cluster $(if $(SCALE),-scale=$(SCALE)) $(if $(filter file,$(origin MINUTES)),,-minutes=$(MINUTES)) $(if $(SCHEDULE),-schedule='$(SCHEDULE)')

.PHONY: bench-failover
bench-failover: ## kill -9 a leader of three NATS servers under load, ROUNDS=12 times (two minutes): what is lost, and how long nothing is confirmed
	@go test ./bus -count=1 -timeout 60m -run 'TestFailover$$' -rounds=$(or $(ROUNDS),12) -v | grep -v '^=== '

##@ Prepare

.PHONY: controlplane
controlplane: ## build etcd, kube-apiserver, kube-controller-manager and kubectl (minutes, once)
	@go run -C test ./controlplane/build

# Without the metadata of templates, the API server would drop their labels and annotations.
GENERATED ?= .
CRD = $(GENERATED)/deploy/crd/scheduledjobs.yaml
.PHONY: generate
generate: $(CONTROLLER_GEN) ## deepcopy functions and the CRD from api/; a test checks that they are current
	@mkdir -p $(dir $(CRD))
	@$(CONTROLLER_GEN) object paths=./api/... output:object:dir=$(GENERATED)/api/v1alpha1
	@$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:stdout >$(CRD)
	@go run ./internal/dev/crd $(CRD)

.PHONY: contract
contract: ## docs/asyncapi.yaml and docs/schemas from the types in events/; a test checks that they are current
	@go run -C test ./contract

$(CONTROLLER_GEN):
	@echo "building controller-gen (once, about half a minute)"
	@mkdir -p $(CACHE)/bin
	@GOBIN=$(CACHE)/bin go install sigs.k8s.io/controller-tools/cmd/controller-gen@$(patsubst controller-gen-%,%,$(notdir $@))
	@mv $(CACHE)/bin/controller-gen $@

.PHONY: tidy
tidy: ## go mod tidy in every module
	@for m in . test test/natscli test/controlplane/kubernetes test/controlplane/etcd; do (cd $$m && go mod tidy) || exit 1; done
