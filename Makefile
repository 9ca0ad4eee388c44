# The README's commands; CMake does the work.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
.PHONY: help build train check bench install uninstall deb reference bootstrap format clean

build: ## the library and build/release/mixtape
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --parallel $(JOBS) -- --no-print-directory -s

help: ## this text
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' Makefile | expand -t 12
	@echo "variables: PREFIX ($(PREFIX)), DESTDIR (before PREFIX while installing), JOBS ($(JOBS))"

train: bootstrap build ## trains the guide's model in mixed precision, on MNIST or on the built-in digits
	@scripts/train

check: ## builds and runs all tests and checks; ends with one line of counts
	@scripts/bootstrap --check
	@scripts/check

bench: bootstrap ## builds and runs the benchmark program, with its peers (OpenBLAS, oneDNN) if they install
	@scripts/bootstrap --bench
	@cmake --preset bench --log-level=WARNING
	@cmake --build --preset bench --parallel $(JOBS) -- --no-print-directory -s
	@build/release/bench/bench

install: build ## library, headers, program, man pages, completions, documents and examples, below PREFIX
	@scripts/install build/release "$(PREFIX)" "$(DESTDIR)"

uninstall: ## removes what install of this version put below PREFIX
	@scripts/uninstall build/release "$(PREFIX)" "$(DESTDIR)"

deb: build ## Debian packages of library, headers and program, in build/release/packages
	@cd build/release && cpack -G DEB >cpack.log 2>&1 || { cat cpack.log >&2; exit 1; }
	@ls build/release/packages/*.deb

reference: ## the reference of the public headers, by Doxygen, in build/reference/html
	@tools/reference build/reference

bootstrap: ## installs the packages that the build needs (Debian 12)
	@scripts/bootstrap

format: ## lays out all sources by clang-format
	@tools/sources | xargs clang-format -i

clean: ## removes build/
	@rm -rf build
