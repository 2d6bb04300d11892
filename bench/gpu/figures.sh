#!/bin/bash
# Measures the figures of a GPU: the rows of bench/gpu/table.txt, then the networks, interleaved with cuBLASLt, cuBLAS, cuDNN and PyTorch.
# Figures that OUT already has and whose sources are unchanged are not measured again: run it until it reports that nothing is missing.
# usage: bench/gpu/figures.sh BUILD OUT [--all] [--seconds N] [--data FOLDER] [--only table|networks]
# BUILD: a build folder whose bin/cosmati runs here. --all: every problem of the suites, not only representative ones. --seconds: limit of
# this call, compiling included (570). --data: folder with mnist/ and dcgan/ for the networks (../shared/data; they are skipped without
# it).
# OUT/table.jsonl, figures.jsonl, device.txt: for bench/results/GPU/, from which bench/report.py writes docs/performance.md; OUT/log.txt.
# --only: one of the two parts; on a machine with two GPUs both may run at the same time, each with its own OUT and CUDA_VISIBLE_DEVICES.
# PYTHON: the Python with torch (python3). COSMATI_COMMIT: the commit to record if there is no repository.
# exit status: 0 if everything is measured and correct, 1 if something is missing or failed.
set -u
build=$(realpath "$1") out=$2
shift 2
here=$(realpath "$(dirname "$0")")
all=() seconds=570 data=$here/../../../shared/data only=
while (($#)); do
  case $1 in
    --all) all=(--all) ;;
    --seconds) seconds=$2; shift ;;
    --data) data=$2; shift ;;
    --only)
      only=$2; shift
      [[ $only == table || $only == networks ]] || { echo "figures.sh: --only must be table or networks, not $only" >&2; exit 2; } ;;
    *) echo "figures.sh: unknown argument $1; valid values: --all, --seconds N, --data FOLDER and --only table|networks" >&2; exit 2 ;;
  esac
  shift
done
python=${PYTHON:-python3}
cosmati=$build/bin/cosmati
mkdir -p "$out"
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
export COSMATI_CACHE=${COSMATI_CACHE:-$parts/kernels}
COSMATI_COMMIT=$("$python" "$here/../measure.py") || exit 1
export COSMATI_COMMIT
. "$here/libraries.sh"

"$cosmati" info --describe 0 >"$out/device.txt" || { cat "$out/device.txt"; exit 1; }
"$python" "$here/rows.py" select "$here/table.txt" "${all[@]}" >"$parts/table.txt"
"$cosmati" bench table --file "$parts/table.txt" --backend cuda --digest >"$parts/digests.jsonl" 2>>"$out/log.txt" ||
  { echo "some rows cannot be planned:"; tail -n 3 "$out/log.txt"; }

missing() { # writes the remaining rows of the table to todo.txt
  "$python" "$here/rows.py" todo "$parts/table.txt" "$parts/digests.jsonl" "$out/table.jsonl" >"$parts/todo.txt"
  wc -l <"$parts/todo.txt"
}
measure_table() { # PERCENT of the time after which to stop
  local limit=$((seconds * $1 / 100 - SECONDS))
  (($(missing) > 0 && limit > 0)) || return
  timeout "$limit" "$cosmati" bench table --file "$parts/todo.txt" --backend cuda --json "$out/table.jsonl" >>"$out/log.txt" 2>&1
  echo "table: exit status $? after $SECONDS s, $(missing) of $(wc -l <"$parts/table.txt") rows are left"
}
measure_networks() { # PART: lenet5, dcgan, gan (its training) or mnist; skipped if already measured
  local limit=$((seconds - SECONDS))
  "$python" "$here/rows.py" have "$1" "$out/figures.jsonl" && return
  ((limit > 0)) || return
  timeout "$limit" "$python" "$here/../figures.py" "$cosmati" --only networks --gpu-parts "$1" --gpu-out "$out/figures.jsonl" \
    --out "$parts/none.jsonl" --torch "$python" --mnist "$data/mnist" --dcgan "$data/dcgan" >>"$out/log.txt" 2>&1
  echo "$1: exit status $? after $SECONDS s"
}

measure_all_networks() {
  if [ -d "$data/mnist" ] && [ -d "$data/dcgan" ]; then
    for part in lenet5 dcgan gan mnist; do measure_networks $part; done
  else
    echo "the networks are skipped: $data has no mnist and dcgan; pass --data FOLDER"
  fi
}
networks_are_there() {
  [ -d "$data/mnist" ] || return 0
  local part
  for part in lenet5 dcgan gan mnist; do
    "$python" "$here/rows.py" have "$part" "$out/figures.jsonl" || { echo "$part is missing"; return 1; }
  done
}
if [ "$only" = networks ]; then
  measure_all_networks
  networks_are_there
  exit
fi
echo "$(missing) of $(wc -l <"$parts/table.txt") rows remain to be measured"
# Compiling a kernel takes a second or two on one core, so all missing kernels are compiled on all cores
# first.
"$python" "$here/rows.py" compile "$parts/todo.txt" --backend cuda --device-description "$out/device.txt" --threads 1 |
  timeout $((seconds / 3)) xargs -r -P "$(nproc)" -L 1 "$cosmati" compile >"$parts/compile.txt" 2>&1
grep -h "^cosmati:" "$parts/compile.txt" >>"$out/log.txt" 2>/dev/null
echo "compiled after $SECONDS s"
measure_table $([ "$only" = table ] && echo 100 || echo 70)
[ "$only" = table ] || measure_all_networks
measure_table 100
left=$(missing)
echo "$((left)) rows are left after $SECONDS s; lines in $out"
((left == 0)) && ! grep -q '"verified": *false\|"peer_verified": *false' "$out/table.jsonl" && { [ "$only" = table ] || networks_are_there; }
