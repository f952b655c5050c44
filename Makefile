# make demo    a conversation with the agent, on real data; leaves charts in demo-out/
# make build   bin/cellard, one static binary
# make test    every test, with the race detector, on the oldest and newest ipykernel
# make guest   the agent in a virtual machine, called over vsock (QEMU; on Debian)
# make lint    vet, staticcheck, formatting
# make bench   figures, each beside its peer; FIGURES="echo png" for some of them
# make fuzz    every fuzz target for FUZZTIME
# Each can be run again and again, by root or not.

GO       ?= go
FUZZTIME ?= 30s
FIGURES  ?=

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BUILD   := CGO_ENABLED=0 $(GO) build -buildvcs=false -trimpath -ldflags "-s -w -X main.version=$(VERSION)"

# Tools that are run, not linked: pinned here, so that go.mod has only what the
# code needs. staticcheck needs Go 1.25, the rest what go.mod says.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
GOTESTSUM   := gotest.tools/gotestsum@v1.13.0

.PHONY: demo build test guest lint bench fuzz

demo: build
	@python="$$(scripts/setup-python.sh newest)" && $(GO) run ./demo -agent bin/cellard -python "$$python" -out demo-out

build:
	$(BUILD) -o bin/cellard ./cmd/cellard

# The other architecture is built too: a 64-bit assumption about one shows there.
test: build
	@GOARCH=arm64 $(BUILD) -o /dev/null ./cmd/cellard
	@command -v gcc >/dev/null || scripts/install.sh gcc libc6-dev # the race detector needs cgo
	@newest="$$(scripts/setup-python.sh newest)" && oldest="$$(scripts/setup-python.sh oldest)" && \
	languages="$$(scripts/setup-languages.sh)" && eval "$$languages" && \
	CELLARD_TEST_PYTHON="$$newest" CELLARD_TEST_PYTHONS="$$oldest:$$newest" CGO_ENABLED=1 \
	$(GO) run $(GOTESTSUM) --format pkgname -- -race -timeout 40m ./...

# Apart from test: it takes root, QEMU and Rust to set up, and some minutes.
guest:
	@guest="$$(scripts/setup-guest.sh)" && CELLARD_TEST_GUEST="$$guest" \
	$(GO) run $(GOTESTSUM) --format standard-verbose -- -count=1 -timeout 30m ./internal/guest

lint:
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	@files="$$(gofmt -l $$(git ls-files '*.go'))"; [ -z "$$files" ] || { echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; }
	$(GO) mod tidy -diff
	@for f in $$(git ls-files '*.sh'); do sh -n "$$f" || exit 1; done
	@for f in $$(git ls-files '*.py'); do "$$(scripts/setup-python.sh newest)" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$$f" || exit 1; done

bench: build
	@python="$$(scripts/setup-python.sh newest)" && languages="$$(scripts/setup-languages.sh)" && eval "$$languages" && \
	JUPYTER_PATH="$$(scripts/setup-peers.sh)" CELLARD_NODE="$$CELLARD_TEST_NODE" $(GO) run ./bench -agent bin/cellard -python "$$python" $(FIGURES)

fuzz:
	@GO="$(GO)" FUZZTIME="$(FUZZTIME)" scripts/fuzz.sh
