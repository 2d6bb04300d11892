#!/bin/bash
# What is run on a machine with a GPU, in one call and within a number of seconds: the article's ninth figure against
# cuBLASLt, random problems verified, the sanitizers over each family of kernels, the tests. Results as JSON Lines and
# logs, nine files, in the folder OUT.
# usage: bench/gpu/run.sh BUILD SECONDS OUT [STEP...]     BUILD: built with -DCOSMATI_PORTABLE=ON, or on that machine
# STEP: environment compile figure9 tensor division grouped verify primitives convolutions memcheck racecheck tests;
# without any, all of them in this order.
# COSMATI_COMMIT: told in the results, where there is no repository.
# exit status: 0 if every step ended well; what did not is in OUT/summary.txt.
set -u
build=$(realpath "$1") seconds=$2 out=$3
shift 3
chosen=("$@")
cosmati=$build/bin/cosmati
here=$(realpath "$(dirname "$0")")
mkdir -p "$out"
parts=$(mktemp -d)
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
export PATH=$PATH:/usr/local/cuda/bin
export COSMATI_CACHE=${COSMATI_CACHE:-$parts/kernels}
trap 'rm -rf "$parts"' EXIT
failed=()

# Libraries that lie with other programs only.
for library in libcublasLt.so.13 libnvrtc.so.13 libcudnn.so.9; do
  ldconfig -p | grep -q "$library" && continue
  [ -e "/usr/local/cuda/lib64/$library" ] && continue
  found=$(find /usr /opt -name "$library" -print -quit 2>/dev/null)
  [ -n "$found" ] && LD_LIBRARY_PATH=$(dirname "$found")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
done

left() { echo $((seconds - SECONDS)); }

# step NAME MOST LOG COMMAND...: at most MOST seconds, and no more than are left.
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

environment() {
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv
  "$cosmati" info
  ldd "$cosmati" "$build/lib/libcosmati.so"
}

# All problems of the figure; f32 by both main loops, too; then what multiplies without tensor cores, alone: beside a
# peer that draws all the power that the board has, the clock would fall.
figure() {
  "$cosmati" bench gemm --suite figure9 --backend cuda --peer cublaslt --slices 11 --slice-seconds 0.1 \
    --json "$out/figure9.jsonl" || return
  grep -E "^subject|^about|--type f32" "$here/../suites/figure9.txt" >"$parts/f32.txt"
  for kernel in double_buffered multistage; do
    "$cosmati" bench gemm --shapes "$parts/f32.txt" --kernel $kernel --backend cuda --peer cublaslt --slices 9 \
      --slice-seconds 0.1 --json "$out/figure9.jsonl" || return
  done
  grep -E "^subject|^about|--type (f64|s8)|accumulator f16" "$here/../suites/figure9.txt" >"$parts/simt.txt"
  "$cosmati" bench gemm --shapes "$parts/simt.txt" --kernel double_buffered --backend cuda --slices 9 --slice-seconds 0.1 \
    --json "$out/figure9.jsonl"
}

# Tensor cores where shapes are hard: squares of bf16, products that cannot be fetched as they lie, other types.
tensor() {
  local words
  "$cosmati" bench gemm --suite squares --type bf16 --layout tn --backend cuda --peer cublaslt --slices 5 --slice-seconds 0.06 \
    --json "$out/tensor.jsonl" || return
  # By WMMA: what the figure promises, then the other types and the loop through registers.
  local kernel
  for kernel in multistage double_buffered; do
    for words in "--type f16 --layout nn" "--type f16 --layout nt" "--type f16 --layout tn" "--type f16 --layout tt" \
      "--type f16 --accumulator f16" "--type bf16" "--type tf32" "--type f64" "--type s8 --layout tn" "--type s8 --layout nn"; do
      # shellcheck disable=SC2086
      "$cosmati" bench gemm --size 4096x4096x4096 $words --kernel $kernel --policy multiply=wmma --backend cuda --peer cublaslt \
        --slices 5 --slice-seconds 0.06 --json "$out/tensor.jsonl" || return
    done
  done
  for words in "large" "huge" "huge,block_k=64,stages=3" "large,block_k=64,stages=3"; do
    "$cosmati" bench gemm --size 4096x4096x4096 --type f16 --kernel multistage --policy "$words,multiply=wmma" --backend cuda \
      --peer cublaslt --slices 5 --slice-seconds 0.06 --json "$out/tensor.jsonl" || return
  done
  "$cosmati" bench gemm --suite ragged --type bf16 --backend cuda --peer cublaslt --slices 5 --slice-seconds 0.06 \
    --json "$out/tensor.jsonl" || return
  # The ways of operands that lie otherwise than wgmma wants, side by side (docs/decisions/0011).
  for words in "--size 4096x4096x4096 --type tf32 --layout nn --policy operands=repacked" \
    "--size 2048x2048x2048 --type tf32 --layout nn" "--size 8192x8192x8192 --type tf32 --layout nn" \
    "--size 2048x2048x2048 --type tf32 --layout tt" "--size 8192x8192x8192 --type tf32 --layout tt" \
    "--size 4096x4096x4096 --type tf32 --layout nt --policy operands=repacked" \
    "--size 4096x4096x4096 --type tf32 --layout nt --policy operands=registers" \
    "--size 4096x4096x4096 --type bf16 --layout tn --misalign 4 --policy operands=threads" \
    "--size 4096x4096x4096 --type bf16 --layout tn --misalign 4 --policy operands=repacked" \
    "--size 4097x4096x4098 --type bf16 --layout tn --policy operands=threads" \
    "--size 1x4099x4093 --type bf16 --layout tn --policy operands=threads" \
    "--size 16381x1021x67 --type bf16 --layout nn --policy operands=threads" \
    "--size 521x523x16381 --type tf32 --layout tn --policy operands=threads"; do
    # shellcheck disable=SC2086
    "$cosmati" bench gemm $words --kernel warp_specialized --backend cuda --peer cublaslt --slices 5 --slice-seconds 0.06 \
      --json "$out/tensor.jsonl" || return
  done
  for words in "--type tf32 --layout nn" "--type tf32 --layout nt" "--type tf32 --layout tn" "--type tf32 --layout tt" \
    "--type e4m3 --d-type bf16 --layout tn" "--type f16 --layout tn"; do
    # shellcheck disable=SC2086
    "$cosmati" bench gemm --size 4096x4096x4096 $words --backend cuda --peer cublaslt --slices 5 --slice-seconds 0.06 \
      --json "$out/tensor.jsonl" || return
  done
  # By mma.sync, whose ceilings are others.
  for words in bf16 f16 tf32 s8 f64; do
    "$cosmati" bench gemm --size 4096x4096x4096 --type $words --layout tn --kernel multistage --policy multiply=mma \
      --backend cuda --slices 5 --slice-seconds 0.06 --json "$out/tensor.jsonl" || return
  done
}

# Parts of k by all ways, near the edges of waves and where k is deep; each as it is planned, too.
division() {
  local size policy
  "$cosmati" verify gemm --backend cuda --type bf16 --layout tn --size 1536x1536x1536,2560x2560x2560,1000x1000x4096,520x300x20000x3 \
    --policy partition=stream_k --json >>"$out/division.jsonl" || return
  for size in 1536x1536x1536 1792x1792x1792 2304x2304x2304 2560x2560x2560 3072x3072x3072 4096x4096x4096 4096x4224x4096 \
    512x512x16384 256x256x65536 128x4096x4096 64x4096x14336; do
    for policy in "" large,partition=tiles large,partition=stream_k medium,partition=stream_k huge,partition=stream_k \
      partition=split_k partition=stream_k; do
      "$cosmati" bench gemm --type bf16 --layout tn --backend cuda --size $size ${policy:+--policy $policy} --peer cublaslt --slices 5 \
        --slice-seconds 0.04 --json "$out/division.jsonl" || return
    done
  done
  for policy in partition=tiles partition=split_k partition=stream_k; do
    "$cosmati" bench gemm --type f32 --kernel multistage --backend cuda --size 1024x1024x1024,1536x1536x1536,256x256x16384 \
      --policy $policy --peer cublaslt --slices 5 --slice-seconds 0.04 --json "$out/division.jsonl" || return
  done
}

# Products of different sizes in one launch, by the plan and one after another; batches by pointers beside the same by strides.
grouped() {
  "$cosmati" bench gemm --suite grouped --backend cuda --slices 5 --slice-seconds 0.06 --json "$out/grouped.jsonl" || return
  "$cosmati" bench gemm --suite grouped --kernel each_member --backend cuda --slices 5 --slice-seconds 0.06 \
    --json "$out/grouped.jsonl" || return
  local words
  for words in "--size 1024x1024x1024x64" "--size 512x512x512x64" "--size 2048x2048x128x64" "--size 128x128x128x1024"; do
    # shellcheck disable=SC2086
    for pointers in "" --by-pointers; do
      "$cosmati" bench gemm $words $pointers --type bf16 --layout tn --backend cuda --peer cublaslt --slices 5 --slice-seconds 0.06 \
        --json "$out/grouped.jsonl" || return
    done
  done
}

# Random problems: types, layouts, odd extents, gaps, misalignment, batches, epilogues; 36 times 150 of them. Each is
# another kernel, so that most of the time goes into compiling, on all cores.
verify() {
  local jobs=() seed=1
  for words in "--type f32" "--type f64" "--type f16" "--type f16 --accumulator f16" "--type bf16" "--type s8" \
    "--type u8" "--type f32 --c-type f16 --d-type f16"; do
    for kernel in double_buffered multistage; do
      jobs+=("$words --kernel $kernel --seed $((seed++))")
    done
  done
  for words in "--type f16" "--type bf16" "--type tf32" "--type s8" "--type u8" "--type bf16 --c-type f32 --d-type f32"; do
    jobs+=("$words --kernel warp_specialized --seed $((seed++))")
  done
  # Operands that threads bring.
  for words in "--type tf32 --misalign 4" "--type bf16 --misalign 4" "--type f16 --misalign 2" "--type e4m3 --d-type f32 --layout tn --misalign 4"; do
    jobs+=("$words --kernel warp_specialized --seed $((seed++))")
  done
  for words in "--type bf16 --kernel warp_specialized" "--type s8 --kernel warp_specialized" "--type f16 --kernel multistage" \
    "--type f32 --kernel multistage" "--type f64 --kernel multistage"; do
    jobs+=("$words --policy partition=stream_k --seed $((seed++))")
  done
  for words in "--type f16" "--type f16 --accumulator f16" "--type bf16" "--type tf32" "--type f64" "--type s8" "--type u8"; do
    for kernel in double_buffered multistage; do
      jobs+=("$words --kernel $kernel --policy multiply=wmma --seed $((seed++))")
    done
  done
  for words in "--group random" "--group random --type bf16" "--group random --type f16 --layout tn" "--group random --type s8" \
    "--by-pointers --size 64:264:40x128:256:64x64:512:64x7 --type bf16 --layout tn --kernel warp_specialized" \
    "--by-pointers --size 64:264:40x128:256:64x64:512:64x7 --type f16 --layout nn --kernel warp_specialized"; do
    jobs+=("$words --seed $((seed++))")
  done
  printf '%s\n' "${jobs[@]}" | xargs -P "$(nproc)" -I{} sh -c \
    "'$cosmati' verify gemm --backend cuda --count 150 {} --json >'$parts/verify.'\$\$ || { echo FAILED: verify gemm {}; exit 1; }"
}

# Every other primitive: random problems of each type, and large tensors by the share of the copy bandwidth.
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
  local status=$?
  for type in f32 f16; do
    # shellcheck disable=SC2086
    while read -r words; do
      "$cosmati" bench $words --type $type --backend cuda --slices 5 --slice-seconds 0.05 --json "$out/primitives.jsonl" || status=1
    done <<'LINES'
activation --size 67108864 --function relu
activation --size 67108864 --function gelu
activation --size 67108864 --function gelu --direction backward
add --size 8192x8192
elementwise --size 64x256x56x56 --epilogue relu(acc*scale[c]+bias[c])+residual[n,c,h,w]
dropout --size 8192x8192
adam --size 8192x8192
transform --size 64x256x56x56 --from nchw --to nhwc
transform --size 64x256x56x56 --from nhwc --to nchw
reduce --size 64x256x56x56 --axes 0,2,3
reduce --size 65536x1024 --axes 0
reduce --size 65536x1024 --axes 1
batchnorm --size 64x256x56x56
batchnorm --size 64x256x56x56 --training
batchnorm --size 64x256x56x56 --training --layout nhwc
softmax --size 65536x1024
softmax --size 1024x131072
softmax --size 65536x1024 --direction backward
cross-entropy --size 65536x1000
pool --size 64x256x56x56
pool --size 64x256x56x56 --layout nhwc
pool --size 64x256x56x56 --layout nhwc --direction backward
pool --size 64x256x56x56 --direction backward
lrn --shape 64x256x27x27 --size 5
LINES
  done
  return $status
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
    "--type bf16 --layout nn --size 64x128x4096 --policy deep_four"; do
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
  jobs+=("--by-pointers --size 129x136x72x5 --type bf16 --layout tn --kernel warp_specialized")
  printf '%s\n' "${jobs[@]}" | xargs -P 8 -I{} sh -c \
    "compute-sanitizer --tool $tool --error-exitcode 9 '$cosmati' verify gemm --backend cuda {} || { echo FAILED: $tool {}; exit 1; }"
}

# Every algorithm of a convolution in every direction that it has: verified, and timed against the others.
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
  # Images unrolled by the copy engine: whole steps of channels, with a remainder, fewer than one; each policy.
  for shape in "--size 4x64x33x29x40x3x3 --pad 1" "--size 3x80x30x31x24x5x3 --stride 2,3 --pad 2,0,1,1" "--size 3x16x19x20x8x3x3 --dilation 3,2" \
    "--size 5x32x17x23x264x2x4 --pad 0,3,1,2" "--size 1x256x7x7x128x3x3 --pad 1" "--size 64x128x14x14x256x3x3 --pad 1"; do
    for type in f16 bf16 tf32 s8 e4m3; do
      jobs+=("--layout nhwc --type $type --kernel warp_specialized $shape")
    done
    jobs+=("--layout nhwc --type f16 --direction data --kernel warp_specialized $shape" "--layout nhwc --type bf16 --direction data --kernel warp_specialized $shape")
    for policy in small large huge thin_pair partition=split_k partition=stream_k; do
      jobs+=("--layout nhwc --type f16 --kernel warp_specialized --policy $policy $shape")
    done
    jobs+=("--layout nhwc --type f16 --kernel warp_specialized --epilogue \\\"relu(acc+bias[k])\\\" $shape")
  done
  printf '%s\n' "${jobs[@]}" | xargs -P "$(nproc)" -I{} sh -c \
    "'$cosmati' verify conv --backend cuda {} --json >'$parts/verify.'\$\$ || { echo FAILED: verify conv {}; exit 1; }" || return
  # The 3x3 layers of resnet50.
  for shape in "64x64x56x56x64x3x3" "64x128x56x56x128x3x3 --stride 2" "64x128x28x28x128x3x3" "64x256x28x28x256x3x3 --stride 2" "64x256x14x14x256x3x3" \
    "64x512x14x14x512x3x3 --stride 2" "64x512x7x7x512x3x3"; do
    for direction in forward data; do
      for algorithm in warp_specialized implicit_gemm; do
        "$cosmati" bench conv --size $shape --pad 1 --layout nhwc --type f16 --direction $direction --algorithm $algorithm --backend cuda \
          --slices 5 --slice-seconds 0.04 --json "$out/convolutions.jsonl" || return
      done
    done
  done
  for layout in nchw nhwc; do
    for type in f32 f16; do
      for shape in 64x64x56x56x64x3x3 64x256x56x56x256x3x3 64x512x14x14x512x3x3 64x512x7x7x512x3x3; do
        for direction in forward data; do
          "$cosmati" bench conv --size $shape --pad 1 --layout $layout --type $type --direction $direction --algorithm winograd --backend cuda \
            --json "$out/convolutions.jsonl" || return
        done
      done
      for algorithm in implicit_gemm unroll_gemm direct_tiled; do
        "$cosmati" bench conv --size 64x64x56x56x64x3x3 --pad 1 --layout $layout --type $type --algorithm $algorithm --backend cuda \
          --slices 5 --slice-seconds 0.04 --json "$out/convolutions.jsonl" || return
      done
      for direction in forward data filter; do
        for algorithm in depthwise implicit_gemm direct; do
          "$cosmati" bench conv --size 64x256x28x28x256x3x3 --pad 1 --groups 256 --layout $layout --type $type --direction $direction \
            --algorithm $algorithm --backend cuda --slices 5 --slice-seconds 0.04 --json "$out/convolutions.jsonl" || return
        done
      done
      for algorithm in gemm implicit_gemm; do
        "$cosmati" bench conv --size 64x256x28x28x256x1x1 --layout $layout --type $type --algorithm $algorithm --backend cuda \
          --slices 5 --slice-seconds 0.04 --json "$out/convolutions.jsonl" || return
      done
    done
  done
}

# The suites of convolutions against cuDNN: all of them forward, then the gradients of two. Kernels are compiled
# beforehand, on all cores.
conv_suites() {
  local lines=() suite images type layout direction words status=0
  for direction in forward data filter; do
    for suite in "resnet50 64" "vgg16 64" "deepbench 16" "mobilenet 64" "dcgan 16,1024" "lenet 64,512" "odd 7"; do
      images=${suite#* } suite=${suite% *}
      [[ $direction = forward || $suite = resnet50 || $suite = vgg16 ]] || continue
      for type in f32 f16; do
        layout=nchw
        [ $type = f16 ] && layout=nhwc
        lines+=("conv --suite $suite --images $images --type $type --layout $layout --direction $direction --backend cuda")
      done
    done
  done
  printf '%s\n' "${lines[@]}" | xargs -P "$(nproc)" -I{} sh -c "'$cosmati' compile {} --threads 2 >/dev/null" || status=1
  for words in "${lines[@]}"; do
    # shellcheck disable=SC2086
    "$cosmati" bench $words --peer cudnn --slices 3 --slice-seconds 0.01 --verify-below 1e6 --json "$out/conv.jsonl" || status=1
  done
  return $status
}

tests() {
  local status=0
  for test in core tile epilogue plan ops jit emulated; do
    [ -x "$build/bin/test_$test" ] || continue
    echo "== $test"
    "$build/bin/test_$test" --gtest_brief=1 || status=1
  done
  return $status
}

export -f environment figure tensor division grouped verify primitives convolutions conv_suites sanitize tests
export build cosmati here out parts
: >"$out/summary.txt"
step environment 60 "$out/environment.txt" bash -c environment
step compile 120 "$out/compile.jsonl" "$cosmati" compile gemm --suite figure9 --json
step figure9 300 "$out/bench.txt" bash -c figure
step tensor 120 "$out/bench.txt" bash -c tensor
step division 180 "$out/bench.txt" bash -c division
step grouped 120 "$out/bench.txt" bash -c grouped
step verify 420 "$out/log.txt" bash -c verify
step primitives 240 "$out/log.txt" bash -c primitives
step convolutions 240 "$out/log.txt" bash -c convolutions
step conv_suites 300 "$out/log.txt" bash -c conv_suites
step memcheck 120 "$out/log.txt" bash -c "sanitize memcheck"
step racecheck 120 "$out/log.txt" bash -c "sanitize racecheck"
step tests 90 "$out/log.txt" bash -c tests
cat "$parts"/verify.* >"$out/verify.jsonl" 2>>"$out/log.txt"

{
  cat "$out"/{figure9,tensor,grouped}.jsonl >"$parts/all.jsonl" 2>>"$out/log.txt"
  python3 "$here/summary.py" "$parts/all.jsonl" "$out/verify.jsonl" "$out/conv.jsonl"
  grep -h "FAILED" "$out/log.txt" | head -20
  for failure in "${failed[@]+"${failed[@]}"}"; do echo "NOT WELL: $failure"; done
} 2>&1 | tee -a "$out/summary.txt"
((${#failed[@]} == 0))
