#!/usr/bin/env bash
# Makes sure that the Debian packages needed by `make run` (no argument), `make test` (test) or `make docs` (docs) are
# installed: installs them as root, otherwise lists those missing. On other systems it relies on CMake to find what
# it needs.
set -euo pipefail

packages=(g++ make cmake ninja-build pkg-config libdnnl-dev libopenblas0 libcli11-dev libfmt-dev nlohmann-json3-dev
          libpng-dev zlib1g-dev libboost-context-dev libopenmpi-dev openmpi-bin dataset-fashion-mnist)
if [ "${1:-}" = test ]; then
  packages+=(git clang clang-format libclang-rt-14-dev libgtest-dev python3 python3-dev python3-venv python3-numpy python3-onnx python3-yaml
             libonnx-testdata gdb libfftw3-single3 libfftw3-double3 groff-base zsh fish)
fi

if [ "${1:-}" = docs ]; then
  packages+=(doxygen python3 python3-venv)
fi

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not a Debian system; install manually whatever CMake does not find: ${packages[*]}" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
  echo "setup: these packages are missing, and only root can install them:" >&2
  echo "  sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
