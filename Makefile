# The README's commands; CMake does the work.
JOBS ?= $(shell nproc)
.PHONY: build train check bench bootstrap format clean

build: ## the library and build/release/mixtape
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --parallel $(JOBS) -- --no-print-directory -s

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

bootstrap:
	@scripts/bootstrap

format:
	@tools/sources | xargs clang-format -i

clean:
	@rm -rf build
