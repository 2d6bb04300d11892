#!/usr/bin/env bash
# Runs both stages of `make test`: with sanitizers, then optimized. The second stage runs even if the first
# fails; the exit status is 0 only if both passed. At the end it prints the slowest tests and, failed stages
# last, what failed tests printed and CTest's summary of each stage.
set -uo pipefail
cd "$(dirname "$0")/.."
stages=(sanitize release)
failed=() times=()

# timed NAME COMMAND...: runs the command and records its time.
timed() {
  local name=$1 begin=$SECONDS status=0
  shift
  "$@" || status=$?
  times+=("$(printf '%7d s  %s' $((SECONDS - begin)) "$name")")
  return $status
}
run_tests() { ctest --preset "$1" 2>&1 | tee "build/$1/ctest.log"; }

for stage in "${stages[@]}"; do
  mkdir -p "build/$stage"
  echo "The stage $stage ended before its tests." >"build/$stage/ctest.log"
  timed "$stage: configure" cmake --preset "$stage" -DCOSMATI_TESTS=ON &&
    timed "$stage: build" cmake --build --preset "$stage" &&
    timed "$stage: tests" run_tests "$stage" || failed+=("$stage")
done

echo $'\nTime of each part:'
printf '%s\n' "${times[@]}"
for stage in "${stages[@]}"; do
  echo $'\n'"Slowest tests of the stage $stage:"
  # "12/345 Test #67: NAME ....   Passed    8.90 sec"
  awk '/ Test +#[0-9]+: .* sec$/ { printf "%9.1f s  %s\n", $(NF - 1), substr($0, index($0, "#")) }' "build/$stage/ctest.log" |
    sed -E 's/#[0-9]+: ([^ ]+).*/\1/' | sort -rn | head -12
done
# The last lines of each failed test's output, which the summary lacks: "12/345 Test #67: NAME ...***Failed 8.90 sec", its output,
# an empty line.
reasons() {
  awk '/ Test +#[0-9]+: .*\*\*\*/ && !/\*\*\*Skipped/ { on = 1 } /^ *Start +[0-9]+: | Test +#[0-9]+: .* (Passed|\*\*\*Skipped)/ { on = 0 }
    on { print substr($0, 1, 400) }' "build/$1/ctest.log" | grep -v '^ *$' | tail -40
}
closing() { sed -n '/tests passed, /,$p; /ended before its tests/p' "build/$1/ctest.log"; }
for pass in passed failed; do
  for stage in "${stages[@]}"; do
    state=passed
    [[ " ${failed[*]:-} " != *" $stage "* ]] || state=failed
    [ $pass = $state ] || continue
    [ $state = passed ] || { echo $'\n'"Failed tests of the stage $stage, the end of what they print:"; reasons "$stage"; }
    echo $'\n'"Stage $stage:" && closing "$stage"
  done
done
exit $((${#failed[@]} > 0))
