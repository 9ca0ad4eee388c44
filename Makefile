# The README's commands. CMake does the work; `cmake --preset release` is the same build.
JOBS ?= $(shell nproc)
.PHONY: build train check bench bootstrap format clean

build: ## the library and build/release/mixtape
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --parallel $(JOBS) -- --no-print-directory -s

train: bootstrap build ## the main job: the guide's model in mixed precision on real MNIST, or on the built-in digits
	@scripts/train

check: bootstrap ## every check of the project; ends with one line of counts
	@scripts/check

bench: bootstrap build ## with its opponents (OpenBLAS, oneDNN) where they can be installed
	@scripts/bootstrap --bench
	@build/release/mixtape bench

bootstrap:
	@scripts/bootstrap

format:
	@tools/sources | xargs clang-format -i

clean:
	@rm -rf build
