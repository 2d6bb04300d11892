#!/bin/bash
# Checks that the cuDNN peer of `bench conv` is as fast as what PyTorch users get. Times layers of ResNet-50,
# VGG-16 and MobileNetV2 with 64 images by our kernels, cuDNN and PyTorch, interleaved on one GPU: f16 and
# tf32 NHWC, f32 NCHW, three directions. About 120 problems in seven minutes; --all takes every layer.
# usage: bench/gpu/conv_peer.sh BUILD OUT [--all] [--seconds N] [--only SUITE] [--torch-script FILE]
# BUILD: a build folder whose bin/cosmati runs here. PYTHON: the Python with torch (python3).
# --only: vgg16, resnet50 or mobilenet. --torch-script: conv_vs_torch.py RESULTS.jsonl OUT.jsonl, which times
# PyTorch afterward, alone, on a device that has cooled down; its comparison is printed second and does not
# affect the exit status.
# OUT/conv.jsonl: all lines; OUT/plans.jsonl: every plan of cuDNN; OUT/compare.txt: the comparison; with
# --torch-script also OUT/torch.jsonl and OUT/compare_alone.txt.
# exit status: 1 if the peer is not within 5 % of PyTorch (median over the layers of a suite, type and
# direction) or a layer is more than 15 % slower; 2 if a part failed.
set -u
build=$(realpath "$1") out=$2
shift 2
all= seconds=480 torch_script= parts_of_time="vgg16:35 resnet50:75 mobilenet:100" # each suite runs until this percentage of the time has passed
while (($#)); do
  case $1 in
    --all) all=1 ;;
    --seconds) seconds=$2; shift ;;
    --only)
      [[ $2 =~ ^(vgg16|resnet50|mobilenet)$ ]] || { echo "conv_peer.sh: --only must be vgg16, resnet50 or mobilenet, not $2" >&2; exit 2; }
      parts_of_time=$2:100; shift ;;
    --torch-script) torch_script=$(realpath "$2"); shift ;;
    *) echo "conv_peer.sh: unknown argument $1; valid: --all, --seconds N, --only SUITE, --torch-script FILE" >&2; exit 2 ;;
  esac
  shift
done
python=${PYTHON:-python3}
cosmati=$build/bin/cosmati
here=$(realpath "$(dirname "$0")")
mkdir -p "$out"
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
export COSMATI_CACHE=${COSMATI_CACHE:-$parts/kernels}
rm -f "$out/conv.jsonl" "$out/plans.jsonl" "$out/torch.jsonl"

. "$here/libraries.sh"  # both sides load the same cuDNN

# The numbers of the layers of the short run, not counting comments.
chosen_resnet50="1 3 4 7 8 17 22"
chosen_mobilenet="2 4 10 20"
chosen_vgg16="2 9"
layers() { # SUITE
  local chosen=chosen_$1
  grep '^--' "$here/../suites/$1.txt" | awk -v all="$all" -v numbers=" ${!chosen} " 'all != "" || index(numbers, " " NR " ") > 0'
}

# Writes all problems of a suite to one file, ordered by layer, because cuDNN loads each of its kernels once per process;
# and, for the compiler, which uses all cores, to several files for each type and direction.
for part in $parts_of_time; do
  suite=${part%:*}
  head=$(grep '^subject\|^about' "$here/../suites/$suite.txt")
  echo "$head" >"$parts/$suite.txt"
  number=0
  while read -r layer; do
    number=$((number + 1))
    for kind in "f16 nhwc" "tf32 nhwc" "f32 nchw"; do
      for direction in forward data filter; do
        line="$layer --type ${kind% *} --layout ${kind#* } --direction $direction"
        echo "$line" >>"$parts/$suite.txt"
        one=$parts/compile.$suite.${kind% *}.$direction.$((number % 2)).txt
        [ -e "$one" ] || echo "$head" >"$one"
        echo "$line" >>"$one"
      done
    done
  done < <(layers $suite)
done
echo "compiling our kernels on all cores"
printf '%s\n' "$parts"/compile.*.txt |
  timeout 120 xargs -P "$(nproc)" -I{} sh -c "'$cosmati' compile conv --shapes {} --images 64 --backend cuda --threads 1 >>'$out/compile.txt' 2>&1"
echo "compiled after $SECONDS s"
status=0
for part in $parts_of_time; do
  suite=${part%:*}
  limit=$((seconds * ${part#*:} / 100 - SECONDS))
  [ -n "$all" ] && limit=100000
  ((limit > 0)) || limit=1
  timeout "$limit" "$cosmati" bench conv --shapes "$parts/$suite.txt" --images 64 --backend cuda --peer cudnn,torch --python "$python" --slices 5 \
    --slice-seconds 0.01 --verify-below 1e6 --peer-log "$out/plans.jsonl" --json "$out/conv.jsonl" >>"$out/bench.txt" 2>&1
  ended=$?
  echo "$suite: exit status $ended after $SECONDS s"
  ((ended == 0)) || status=2
done
echo "measured $(wc -l <"$out/conv.jsonl") lines after $SECONDS s"
"$python" "$here/compare_peer.py" "$out/conv.jsonl" | tee "$out/compare.txt"
compared=${PIPESTATUS[0]}
if [ -n "$torch_script" ]; then
  grep '"peer":"cudnn"' "$out/conv.jsonl" >"$parts/cudnn.jsonl"
  "$python" "$torch_script" "$parts/cudnn.jsonl" "$out/torch.jsonl" >"$out/torch.txt" 2>&1 || echo "PyTorch's part ended with status $?"
  "$python" "$here/compare_peer.py" "$out/conv.jsonl" "$out/torch.jsonl" >"$out/compare_alone.txt"
fi
((compared == 0)) || exit "$compared"
exit $status
