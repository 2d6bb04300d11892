#!/bin/bash
# Checks on a GPU, in one call of limited duration, that results are correct: verifies random problems, runs the sanitizers over each
# family of kernels, and runs the tests. bench/gpu/figures.sh measures the figures.
# usage: bench/gpu/checks.sh BUILD SECONDS OUT [STEP...]     BUILD: built with -DCOSMATI_PORTABLE=ON, or on that machine
# STEP: products primitives convolutions memcheck racecheck tests; without any, all of them in this order.
# OUT/summary.txt: outcome of each step; verify.jsonl: a line for each problem; log.txt.
# exit status: 0 if every step passed.
set -u
build=$(realpath "$1") seconds=$2 out=$3
shift 3
chosen=("$@")
cosmati=$build/bin/cosmati
here=$(realpath "$(dirname "$0")")
mkdir -p "$out"
parts=$(mktemp -d)
export PATH=$PATH:/usr/local/cuda/bin
export COSMATI_CACHE=${COSMATI_CACHE:-$parts/kernels}
trap 'rm -rf "$parts"' EXIT
steps=" products primitives convolutions memcheck racecheck tests "
for name in "${chosen[@]+"${chosen[@]}"}"; do
  [[ $steps == *" $name "* ]] || { echo "checks.sh: unknown step $name; valid steps:$steps" >&2; exit 2; }
done
failed=()
. "$here/libraries.sh"

left() { echo $((seconds - SECONDS)); }

# step NAME MOST LOG COMMAND...: runs the command for at most MOST seconds, within the remaining time.
step() {
  local name=$1 most=$2 log=$3 begin=$SECONDS
  shift 3
  ((${#chosen[@]})) && [[ " ${chosen[*]} " != *" $name "* ]] && return
  local limit=$(($(left) - 5))
  ((limit > most)) && limit=$most
  if ((limit < 5)); then
    failed+=("$name: no time was left")
    return
  fi
  timeout --kill-after=5 "$limit" "$@" >>"$log" 2>&1
  local status=$?
  echo "$name: exit status $status after $((SECONDS - begin)) s" | tee -a "$out/summary.txt"
  ((status == 0)) || failed+=("$name: exit status $status")
}

# Random problems: types, layouts, odd extents, gaps, misalignment, batches, epilogues. Each needs a kernel of
# its own, so most of the time is spent compiling on all cores.
products() {
  local jobs=() seed=1
  for words in "--type f32" "--type f64" "--type f16" "--type f16 --accumulator f16" "--type bf16" "--type s8" \
    "--type u8" "--type f32 --c-type f16 --d-type f16"; do
    for kernel in double_buffered multistage; do
      jobs+=("$words --kernel $kernel --seed $((seed++))")
    done
  done
  for kernel in gemv tiny; do
    for words in "--type f32" "--type f64" "--type f16" "--type bf16" "--type tf32" "--type s8" "--type e4m3 --d-type f32" "--type bf16 --misalign 2"; do
      jobs+=("$words --kernel $kernel --seed $((seed++))")
    done
  done
  for words in "--type f16" "--type bf16" "--type tf32" "--type s8" "--type u8" "--type bf16 --c-type f32 --d-type f32"; do
    jobs+=("$words --kernel warp_specialized --seed $((seed++))")
  done
  # Operands copied by threads.
  for words in "--type tf32 --misalign 4" "--type bf16 --misalign 4" "--type f16 --misalign 2" "--type e4m3 --d-type f32 --layout tn --misalign 4"; do
    jobs+=("$words --kernel warp_specialized --seed $((seed++))")
  done
  for words in "--type bf16 --kernel warp_specialized" "--type s8 --kernel warp_specialized" "--type f16 --kernel multistage" \
    "--type f32 --kernel multistage" "--type f64 --kernel multistage"; do
    jobs+=("$words --policy partition=stream_k --seed $((seed++))")
  done
  jobs+=("--type f16 --accumulator f16 --kernel warp_specialized --seed $((seed++))")
  for type in bf16 f16 tf32 s8 e4m3; do
    jobs+=("--size 1:161:40x16:416:200x520:9000:848 --type $type --layout tn --kernel warp_specialized --policy partition=split_k_parallel")
    for policy in 192x128_pair 192x96 192x32 192x16 64x16 128x16 large_stores; do
      jobs+=("--size 1:401:80x16:416:200x136:1100:241 --type $type --layout tn --kernel warp_specialized --policy $policy")
    done
  done
  jobs+=("--size 8:808:200x16:616:200x72:520:224 --type f16 --accumulator f16 --layout nt --kernel warp_specialized --policy 256x256")
  for words in "--type f16" "--type f16 --accumulator f16" "--type bf16" "--type tf32" "--type f64" "--type s8" "--type u8"; do
    for kernel in double_buffered multistage; do
      jobs+=("$words --kernel $kernel --policy multiply=wmma --seed $((seed++))")
    done
  done
  for mode in bf16x3 bf16x6 bf16x9 tf32x3; do
    jobs+=("--type f32 --compute $mode --kernel ${mode%x?}_products --seed $((seed++))")
  done
  for words in "nt --size 256:700:148x64:200:68x128:900:384" "nn --size 264x136x4100x3" "nt --size 65x8x8,256x64x20000"; do
    jobs+=("--type tf32 --kernel warp_specialized --policy operands=threads --layout $words")
  done
  for words in "--group random" "--group random --type bf16" "--group random --type f16 --layout tn" "--group random --type s8" \
    "--by-pointers --size 64:264:40x128:256:64x64:512:64x7 --type bf16 --layout tn --kernel warp_specialized" \
    "--by-pointers --size 64:264:40x128:256:64x64:512:64x7 --type f16 --layout nn --kernel warp_specialized"; do
    jobs+=("$words --seed $((seed++))")
  done
  printf '%s\n' "${jobs[@]}" | xargs -P "$(nproc)" -I{} sh -c \
    "case '{}' in *--size*) count= ;; *) count='--count 150' ;; esac
     '$cosmati' verify gemm --backend cuda \$count {} --json >'$parts/verify.'\$\$ || { echo FAILED: verify gemm {}; exit 1; }"
}

# Every other primitive: random problems of each type.
primitives() {
  local jobs=() seed=100 subject type
  for subject in activation add elementwise dropout transform reduce sgd adam batchnorm lrn pool softmax cross-entropy rbf; do
    for type in f32 f16 bf16 f64; do jobs+=("$subject --type $type --seed $((seed++))"); done
  done
  for type in s8 u8 s32; do
    for subject in add transform reduce pool; do jobs+=("$subject --type $type --seed $((seed++))"); done
  done
  printf '%s\n' "${jobs[@]}" | xargs -P "$(nproc)" -I{} sh -c \
    "'$cosmati' verify {} --backend cuda --count 40 --json >'$parts/verify.'\$\$ || { echo FAILED: verify {}; exit 1; }"
}

# Every main loop, multiply and epilogue schedule, split K, ragged edges.
sanitize() {
  local tool=$1 jobs=()
  for kernel in double_buffered multistage; do
    for words in "--type f32" "--type f64" "--type f16 --accumulator f16" "--type s8" "--type bf16"; do
      for rest in "--layout nn --size 129x131x67" "--layout tn --size 128x128x64,33x35x37 --misalign 4" \
        "--layout nt --size 61x67x2048" "--layout tt --size 129x65x33x3 --policy epilogue=staged"; do
        jobs+=("$words --kernel $kernel $rest")
      done
    done
  done
  for words in "--type bf16 --layout nn --size 256x512x64" "--type bf16 --layout tn --size 129x131x67" \
    "--type s8 --layout nt --size 300x256x200" "--type bf16 --layout tt --size 128x256x2048 --policy small" \
    "--type tf32 --layout nt --size 61x67x2048" "--type tf32 --layout nn --size 132x260x300" \
    "--type tf32 --layout tt --size 132x260x300 --misalign 4" "--type bf16 --layout tn --size 260x132x300 --misalign 8" \
    "--type f16 --layout tn --size 33x35x37x3 --misalign 2" \
    "--type bf16 --layout tn --size 600x1000x1000 --policy partition=stream_k" \
    "--type bf16 --layout nn --size 64x128x4096 --policy deep_four" "--type bf16 --layout tn --size 1x1000x520 --policy 64x16" \
    "--type f16 --accumulator f16 --layout nt --size 264x264x200 --policy 256x256" \
    "--type bf16 --layout tn --size 100x136x4000 --policy partition=split_k_parallel"; do
    jobs+=("$words --kernel warp_specialized")
  done
  for kernel in double_buffered multistage; do
    for words in "--type f16 --layout nt --size 129x131x67" "--type s8 --layout nn --size 33x65x200 --misalign 1" \
      "--type f64 --layout tn --size 61x67x2048" "--type f16 --accumulator f16 --layout tt --size 128x128x96x2"; do
      jobs+=("$words --kernel $kernel --policy multiply=wmma")
    done
  done
  for kernel in warp_specialized multistage double_buffered; do
    jobs+=("--group 2x128x40x72,1x8x8,300x256x200,64x64x0 --type bf16 --layout tn --kernel $kernel")
  done
  for words in "--type f64 --layout nt --size 300x200x520" "--type f64 --layout nn --size 130x132x130x3 --policy small" \
    "--type f64 --layout tn --size 300x264x1024 --policy partition=stream_k" "--type f64 --layout tt --size 512x264x264 --policy cluster_m=2" \
    "--type e4m3 --layout tn --size 272x144x1040 --compute fast_accumulation"; do
    jobs+=("$words --kernel warp_specialized")
  done
  jobs+=("--type tf32 --layout nt --size 132x72x300 --kernel warp_specialized --policy operands=threads,tall")
  jobs+=("--type f32 --compute tf32x3 --layout nt --size 65x70x130 --kernel tf32_products")
  jobs+=("--by-pointers --size 129x136x72x5 --type bf16 --layout tn --kernel warp_specialized")
  printf '%s\n' "${jobs[@]}" | xargs -P 8 -I{} sh -c \
    "compute-sanitizer --tool $tool --error-exitcode 9 '$cosmati' verify gemm --backend cuda {} || { echo FAILED: $tool {}; exit 1; }"
}

# Every algorithm of a convolution in every direction that it supports.
convolutions() {
  local jobs=() algorithm direction layout type shape
  for layout in nchw nhwc; do
    for type in f32 f16 bf16; do
      for direction in forward data filter; do
        for shape in "--size 4x24x33x29x40x3x3 --pad 1" "--size 2x16x30x31x24x5x3 --stride 2,1 --pad 2,0,1,1 --groups 4" \
          "--size 3x8x19x20x8x3x3 --dilation 2,1"; do
          for algorithm in implicit_gemm unroll_gemm direct_tiled direct; do
            [ $direction$algorithm = filterdirect_tiled ] && continue
            jobs+=("--layout $layout --type $type --direction $direction --algorithm $algorithm $shape")
          done
        done
        jobs+=("--layout $layout --type $type --direction $direction --algorithm depthwise --size 4x48x33x29x48x3x3 --pad 1 --groups 48")
        jobs+=("--layout $layout --type $type --direction $direction --algorithm depthwise --size 2x24x30x31x48x5x3 --stride 2,1 --groups 24")
        jobs+=("--layout $layout --type $type --direction $direction --algorithm depthwise_rows --size 4x48x33x29x48x3x3 --pad 1 --groups 48")
        jobs+=("--layout $layout --type $type --direction $direction --algorithm depthwise_rows --size 2x24x30x31x24x5x3 --stride 2,1 --pad 2,0,1,1 --groups 24")
        for shape in "--size 4x24x33x29x40x3x3 --pad 1" "--size 3x5x10x9x7x3x3 --pad 2,0,0,1" "--size 2x64x14x14x64x3x3 --pad 1 --max-workspace 4000000"; do
          [ $direction = filter ] && continue
          for tile in 2 4; do
            jobs+=("--layout $layout --type $type --direction $direction --algorithm winograd --policy tile=$tile $shape")
          done
        done
        [ $direction$layout = filternchw ] || jobs+=("--layout $layout --type $type --direction $direction --algorithm gemm --size 4x40x15x13x72x1x1")
      done
    done
  done
  jobs+=("--layout nhwc --type f16 --algorithm unroll_gemm --size 16x64x28x28x64x3x3 --pad 1 --max-workspace 4000000")
  # Images unrolled by TMA: full steps of channels, steps with a remainder, fewer channels than a step; each
  # policy.
  for shape in "--size 4x64x33x29x40x3x3 --pad 1" "--size 3x80x30x31x24x5x3 --stride 2,3 --pad 2,0,1,1" "--size 3x16x19x20x8x3x3 --dilation 3,2" \
    "--size 5x32x17x23x264x2x4 --pad 0,3,1,2" "--size 1x256x7x7x128x3x3 --pad 1" "--size 64x128x14x14x256x3x3 --pad 1"; do
    for type in f16 bf16 tf32 s8 e4m3; do
      jobs+=("--layout nhwc --type $type --kernel warp_specialized $shape")
    done
    jobs+=("--layout nhwc --type tf32 --direction filter --kernel warp_specialized $shape")
    jobs+=("--layout nhwc --type f16 --direction data --kernel warp_specialized $shape" "--layout nhwc --type bf16 --direction data --kernel warp_specialized $shape")
    for policy in small large huge thin_pair partition=split_k partition=stream_k; do
      jobs+=("--layout nhwc --type f16 --kernel warp_specialized --policy $policy $shape")
    done
    jobs+=("--layout nhwc --type f16 --kernel warp_specialized --epilogue \\\"relu(acc+bias[k])\\\" $shape")
  done
  printf '%s\n' "${jobs[@]}" | xargs -P "$(nproc)" -I{} sh -c \
    "'$cosmati' verify conv --backend cuda {} --json >'$parts/verify.'\$\$ || { echo FAILED: verify conv {}; exit 1; }"
}

tests() {
  local status=0 count=0
  for test in core tile epilogue plan ops jit emulated; do
    [ -x "$build/bin/test_$test" ] || continue
    echo "== $test"
    count=$((count + 1))
    "$build/bin/test_$test" --gtest_brief=1 || status=1
  done
  ((count > 0)) || { echo "FAILED: no test program in $build/bin"; return 1; }
  return $status
}

export -f products primitives convolutions sanitize tests
export build cosmati parts
: >"$out/summary.txt"
step products 420 "$out/log.txt" bash -c products
step primitives 240 "$out/log.txt" bash -c primitives
step convolutions 240 "$out/log.txt" bash -c convolutions
step memcheck 120 "$out/log.txt" bash -c "sanitize memcheck"
step racecheck 120 "$out/log.txt" bash -c "sanitize racecheck"
step tests 90 "$out/log.txt" bash -c tests
cat "$parts"/verify.* >"$out/verify.jsonl" 2>>"$out/log.txt"
{
  echo "verified: $(grep -c '"correct":true' "$out/verify.jsonl") passed, $(grep -c '"correct":false' "$out/verify.jsonl") failed"
  grep -h "FAILED" "$out/log.txt" | head -20
  for failure in "${failed[@]+"${failed[@]}"}"; do echo "FAILED: $failure"; done
} 2>&1 | tee -a "$out/summary.txt"
((${#failed[@]} == 0))
