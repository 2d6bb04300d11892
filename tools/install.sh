#!/usr/bin/env bash
# Installs what `make build` made: library, program, headers and documents by CMake; man pages and completion.
# usage: install.sh PREFIX
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=${DESTDIR:-}$1
cmake --install build/release --prefix "$1"
tools/program/write_help.py build/release/bin/cosmati man "$prefix/share/man/man1"
install -D -m 644 share/completions/cosmati.bash "$prefix/share/bash-completion/completions/cosmati"
install -D -m 644 share/completions/_cosmati "$prefix/share/zsh/site-functions/_cosmati"
install -D -m 644 share/completions/cosmati.fish "$prefix/share/fish/vendor_completions.d/cosmati.fish"
