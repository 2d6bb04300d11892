# Two commands do everything, set-up included: `make run` and `make test`. `make help` lists the rest.
DATA ?= /usr/share/datasets/fashion-mnist
OUT ?= out
COSMATI := build/release/bin/cosmati
FUZZ_SECONDS ?= 600

.PHONY: run build test figures fuzz lint format clean help

run: build  ## train LeNet-5 on Fashion-MNIST; model and picture in out/
	@mkdir -p $(OUT)
	$(COSMATI) train lenet5 --data $(DATA) --save $(OUT)/lenet5.safetensors --picture $(OUT)/lenet5.png

build:  ## the program, optimised: build/release/bin/cosmati
	@tools/setup.sh
	@cmake --preset release -DCOSMATI_TESTS=OFF >build-configure.log 2>&1 || { cat build-configure.log; rm -f build-configure.log; exit 1; }
	@rm -f build-configure.log
	@cmake --build --preset release

test:  ## every test: under sanitizers (clang++), then optimised (g++), checks and command line included
	@tools/setup.sh test
	cmake --preset sanitize
	cmake --build --preset sanitize
	ctest --preset sanitize
	cmake --preset release -DCOSMATI_TESTS=ON
	cmake --build --preset release
	ctest --preset release

figures: build  ## measure every figure that the project promises: met, or short by how much
	@tools/setup.sh test
	/usr/bin/python3 bench/figures.py $(COSMATI); status=$$?; /usr/bin/python3 bench/report.py; exit $$status

fuzz:  ## every parser, for FUZZ_SECONDS each (600)
	@tools/setup.sh test
	cmake --preset sanitize
	cmake --build --preset sanitize
	tests/fuzz/run.sh build/sanitize/bin $(FUZZ_SECONDS)

lint:  ## clang-tidy over the library and the program
	cmake --preset release -DCOSMATI_TESTS=ON
	run-clang-tidy -quiet -p build/release '^$(CURDIR)/(src|cli|nets|reference)/'

format:  ## clang-format, in place
	git ls-files -co --exclude-standard '*.h' '*.c' '*.cpp' '*.cu' | xargs clang-format -i

clean:  ## remove what was built
	rm -rf build

help:
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/:/'
