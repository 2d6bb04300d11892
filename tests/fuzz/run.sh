#!/usr/bin/env bash
# Runs fuzz targets from their seed corpus; failures are kept in build/fuzz. usage: run.sh BIN SECONDS [TARGET ...]
set -euo pipefail
bin=$1 seconds=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- $(basename -a "$here"/fuzz_*.cpp | sed 's/\.cpp$//')
for target in "$@"; do
  found="$here/../../build/fuzz/$target"
  mkdir -p "$found"
  "$bin/$target" -max_total_time="$seconds" -max_len=4096 -malloc_limit_mb=300 -timeout=10 -print_final_stats=0 \
    -artifact_prefix="$found/" "$found" "$here/corpus/${target#fuzz_}" 2>&1 | tail -n 25
done
