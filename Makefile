# bindery. "make help" lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
DIST ?= dist
PREFIX ?= /usr/local
DESTDIR ?=

# The platforms whose server program is embedded, and those the command is built for by "make cross".
SERVER_ARCHES ?= amd64 arm64 ppc64le s390x
# Those of them whose layer is embedded as zstd too, for 9 MB each: others are compressed when an image is built.
ZSTD_ARCHES ?= $(shell $(GO) env GOARCH)
CROSS ?= linux/amd64 linux/arm64 linux/ppc64le linux/s390x darwin/amd64 darwin/arm64 windows/amd64

FUZZTIME ?= 30s
STATICCHECK_VERSION ?= v0.8.0
GOVULNCHECK_VERSION ?= v1.1.4

TAGS := $(shell . hack/flags.sh && echo "$$TAGS")
export CGO_ENABLED := 0
export GOWORK := off
export GOFLAGS := $(shell . hack/flags.sh && echo "$$GOFLAGS")

VERSION_PKG := github.com/operator-bindery/bindery/internal/version
# The version: the nearest tag, with the number of commits since then as build metadata (v1.0.0+5.g0123abc). Empty without a
# tag: then the program has the version in its source.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty=+dirty 2>/dev/null | sed -E 's/-([0-9]+)-(g[0-9a-f]+)(\+dirty)?$$/+\1.\2\3/; s/(\+.*)\+dirty$$/\1.dirty/')
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
DATE := $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
LDFLAGS := -s -w
# Compiling takes minutes the first time: "$(COMPILE) ..." is "go build ..." and counts the packages.
COMPILE := GO=$(GO) hack/compile.sh
# The server carries no release, nor the identity of its build, which is made of the flags: a new release makes the same images.
SERVER_LDFLAGS := $(LDFLAGS) -buildid=
STAMP := $(if $(VERSION),-X $(VERSION_PKG).release=$(VERSION) )-X $(VERSION_PKG).commit=$(COMMIT) -X $(VERSION_PKG).date=$(DATE)
SERVERS := $(foreach a,$(SERVER_ARCHES),build/internal/serverbin/bin/opm-server-linux-$(a).layer) \
	$(foreach a,$(filter $(ZSTD_ARCHES),$(SERVER_ARCHES)),build/internal/serverbin/bin/zstd-opm-server-linux-$(a).layer)

# The build that runs the commands of Containerfiles has C in it, and is one static file anyway: no names of users and hosts are
# looked up by the C library. Most of the C is SQLite's, in which the library remembers blobs: fast code is not worth the time.
FULL_TAGS := $(TAGS),netgo,osusergo,buildah,embedserver
FULL_ENV := CGO_ENABLED=1 CGO_CFLAGS="-O0 -g0"

.PHONY: help build build-full build-small servers server test test-all fips race lint bench fuzz fuzz-long demo acceptance cluster registries ocmirror sigstore hostile cross image generate clean install release pin reproduce docs FORCE

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

build: servers ## build dist/bindery with the servers of all platforms inside
	$(COMPILE) -trimpath -tags=$(TAGS),embedserver -ldflags '$(LDFLAGS) $(STAMP)' -o $(DIST)/bindery ./cmd/bindery
	for name in opm oc-mirror grpc_health_probe initializer registry-server; do ln -sf bindery $(DIST)/$$name; done
	@ls -l $(DIST)/bindery | awk '{printf "$(DIST)/bindery: %.1f MB\n", $$5/1e6}'

build-full: servers ## build dist/bindery-full, which runs RUN as well; needs linux and a C compiler with a static libc
	$(FULL_ENV) $(COMPILE) -trimpath -tags=$(FULL_TAGS) -ldflags '$(LDFLAGS) $(STAMP) -linkmode external -extldflags -static' -o $(DIST)/bindery-full ./cmd/bindery
	@if readelf -l $(DIST)/bindery-full | grep -q INTERP; then echo "$(DIST)/bindery-full is not static"; exit 1; fi
	@ls -l $(DIST)/bindery-full | awk '{printf "$(DIST)/bindery-full: %.1f MB\n", $$5/1e6}'

build-small: servers ## build dist/bindery-small, without Containerfiles and the podman store
	$(COMPILE) -trimpath -tags=$(TAGS),embedserver,nobuildah -ldflags '$(LDFLAGS) $(STAMP)' -o $(DIST)/bindery-small ./cmd/bindery
	@ls -l $(DIST)/bindery-small | awk '{printf "$(DIST)/bindery-small: %.1f MB\n", $$5/1e6}'

servers: $(SERVERS) ## build the small server programs that go into images

$(DIST)/opm-server-linux-%: FORCE
	@mkdir -p $(DIST)
	GOOS=linux GOARCH=$* $(COMPILE) -trimpath -tags=$(TAGS),grpcnotrace -ldflags '$(SERVER_LDFLAGS)' -o $@ ./cmd/opm-server

build/internal/serverbin/bin/opm-server-linux-%.layer: $(DIST)/opm-server-linux-%
	@mkdir -p build/internal/serverbin/bin
	@if [ ! -e $@ ] || [ $< -nt $@ ]; then $(GO) run ./build/internal/serverlayer $< linux/$* gzip $@; fi

build/internal/serverbin/bin/zstd-opm-server-linux-%.layer: $(DIST)/opm-server-linux-%
	@mkdir -p build/internal/serverbin/bin
	@if [ ! -e $@ ] || [ $< -nt $@ ]; then $(GO) run ./build/internal/serverlayer $< linux/$* zstd $@; fi

.PRECIOUS: $(DIST)/opm-server-linux-%

server: ## build dist/opm-server for this machine
	$(COMPILE) -trimpath -ldflags '$(SERVER_LDFLAGS)' -o $(DIST)/opm-server ./cmd/opm-server

# The packages with tests that take a part of their cases.
ALL = $(shell git grep -l extent.Stride -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's|^|./|')
# Vetting is left to "make lint", which has more analyzers.
test: ## run the tests, or those of PKG=./images/...
	$(GO) test -ldflags=-s -vet=off -timeout 30m $(or $(PKG),./...)

test-all: ## run the tests with all cases of exhaustive ones, which "make test" takes a part of: a quarter of an hour more
	BINDERY_TEST_ALL=1 $(GO) test -ldflags=-s -vet=off -timeout 90m $(or $(PKG),$(ALL))

fips: ## run the tests of what signs, verifies, mirrors and serves with GODEBUG=fips140=only
	hack/ci/fips.sh

race: ## run the tests with the race detector, or those of PKG; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -vet=off -timeout 30m $(or $(PKG),./...)

lint: ## gofmt, go vet, staticcheck
	@bad=$$(git ls-files '*.go' | xargs gofmt -l); if [ -n "$$bad" ]; then echo "not formatted (run gofmt -w on them):"; echo "$$bad"; exit 1; fi
	$(GO) vet -tags=$(TAGS),hostile ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION) ./...

bench: build ## measure speed, memory and requests beside reference commands; OC_MIRROR names an oc-mirror for mirrors
	hack/bench.sh

fuzz: ## run every fuzz target for FUZZTIME
	FUZZTIME=$(FUZZTIME) hack/fuzz.sh

fuzz-long: ## run the fuzz targets for an hour in all; what they find is written to testdata/fuzz, to become seeds
	FUZZTIME=2m FUZZ_DEEP=yes hack/fuzz.sh

demo: SERVER_ARCHES := $(shell $(GO) env GOARCH)
demo: ## database to catalog to image to server, on this machine, with nothing but Go and make
	@echo "Compiling the server, then the program with the server inside: minutes the first time, later seconds."
	@$(MAKE) --no-print-directory build SERVER_ARCHES=$(SERVER_ARCHES) >/dev/null
	@hack/demo.sh $(DIST)/bindery

acceptance: build ## the image through skopeo, umoci, podman and a real container
	hack/acceptance.sh

cluster: build ## what the program writes for clusters, before a real API server (etcd of Debian, kube-apiserver from its module)
	hack/ci/cluster.sh $(DIST)/bindery

registries: build ## the suite of places of images, and the program, against registries of others (docker-registry of Debian, the others from their modules)
	hack/ci/registries.sh $(DIST)/bindery

ocmirror: ## archives and workspaces between this program and oc-mirror v2, which OC_MIRROR names
	hack/ci/ocmirror.sh

sigstore: build ## signatures by identity with Fulcio, Rekor, a timestamp authority and cosign (all from their modules)
	hack/ci/sigstore.sh $(DIST)/bindery

hostile: build ## attack the program: hostile input, full disks, failing calls, kills; as root for all of it
	HOSTILE_BINDERY=$(abspath $(DIST)/bindery) $(GO) test -count=1 -parallel 4 -tags=$(TAGS),hostile ./hack/hostile ./mirror/medium

cross: ## build the command for every platform, into dist/cross
	@for p in $(CROSS); do \
	  out=$(DIST)/cross/bindery-$${p/\//-}; [[ $$p == windows/* ]] && out+=.exe; \
	  echo "$$out"; GOOS=$${p%/*} GOARCH=$${p#*/} $(COMPILE) -trimpath -ldflags '$(LDFLAGS) $(STAMP)' -o $$out ./cmd/bindery; \
	done

release: ## the files of a release, VERSION=v1.0.0, in DIST; KEY=FILE signs, BASE=IMAGE adds the debug image, PUSH=REPOSITORY pushes
	@cd hack/release && GO=$(GO) $(GO) run . -root "$(CURDIR)" -dist "$(abspath $(DIST))" -version "$(VERSION)" \
	  -commit "$(COMMIT)" -date "$(DATE)" $(if $(PLATFORMS),-platforms "$(PLATFORMS)") $(if $(KEY),-key "$(abspath $(KEY))") \
	  $(if $(BASE),-base "$(BASE)") $(if $(PUSH),-push "$(PUSH)")

pin: ## put the version, digests and checksums of the release in DIST into the recipes of this clone
	@set -- "$(DIST)"/bindery_*_recipes.tar.gz; [ $$# = 1 ] && [ -f "$$1" ] || { echo "there is no release in $(DIST), or several" >&2; exit 1; }; \
	tar -xzf "$$1" -C . --no-same-owner

reproduce: ## release twice, in two directories, as two users, with two umasks, without a cache: the files must be equal
	@COMMIT=$(COMMIT) DATE=$(DATE) PLATFORMS="$(PLATFORMS)" hack/reproduce.sh

image: ## build bindery's own image with podman or buildah
	@tool=$$(command -v buildah || command -v podman) || { echo "neither buildah nor podman is installed"; exit 1; }; \
	$$tool build --build-arg COMMIT=$(COMMIT) --build-arg DATE=$(DATE) -f Containerfile -t bindery .

docs: ## build the documentation site in dist/site, and check its links
	@hack/site/build.sh

generate: ## run go generate
	$(GO) generate ./...

install: build ## install to DESTDIR/PREFIX/bin, with manual pages and completions
	install -D -m 0755 $(DIST)/bindery $(DESTDIR)$(PREFIX)/bin/bindery
	$(DIST)/bindery man --to $(DIST)/man1
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 && install -m 0644 $(DIST)/man1/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	$(DIST)/bindery completion bash | install -D -m 0644 /dev/stdin $(DESTDIR)$(PREFIX)/share/bash-completion/completions/bindery
	$(DIST)/bindery completion zsh | install -D -m 0644 /dev/stdin $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_bindery
	$(DIST)/bindery completion fish | install -D -m 0644 /dev/stdin $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/bindery.fish

clean: ## remove what was built
	rm -rf $(DIST) build/internal/serverbin/bin
