#!/bin/bash
# Measures the DCGAN report's job including its files on a machine with one or two GPUs, or on CPUs: latent vectors as text in, text and a BMP
# picture out, in one process and by mpirun, next to formatting and writing alone; a large .npy file; training on two GPUs relative to one. Lines
# that OUT already has for this commit are not measured again: run it until it reports that nothing is missing.
# usage: bench/gpu/report_job.sh BUILD OUT [--backend cuda|cpu] [--count N] [--array N] [--repeats N] [--seconds N] [--data FOLDER] [--folder FOLDER]
# BUILD: a build folder whose bin/cosmati runs here. --count: images of the report's job (5248). --array: 8-bit images of the .npy file (1000000, or
# what the folder has room for). --repeats: runs of each row, interleaved (3). --seconds: limit of this call (170). --data: folder with mnist/ for
# the training (../shared/data; skipped without it). --folder: for the files, on a memory file system (/dev/shm).
# OUT/report_job.jsonl: a line per run; OUT/log.txt. The last lines of stdout are the ratios. PYTHON: a Python 3 (python3). COSMATI_COMMIT: the
# commit to record if there is no repository.
# exit status: 0 if everything is measured, 1 if something is missing or failed.
set -u
build=$(realpath "$1") out=$2
shift 2
here=$(realpath "$(dirname "$0")")
backend=cuda count=5248 array=1000000 repeats=3 seconds=170 data=$here/../../../shared/data folder=/dev/shm
while (($#)); do
  case $1 in
    --backend | --count | --array | --repeats | --seconds | --data | --folder) printf -v "${1#--}" %s "$2"; shift ;;
    *)
      echo "report_job.sh: unknown argument $1; valid arguments: --backend, --count, --array, --repeats, --seconds, --data and --folder" >&2
      exit 2 ;;
  esac
  shift
done
python=${PYTHON:-python3}
cosmati=$build/bin/cosmati
mkdir -p "$out"
lines=$out/report_job.jsonl
work=$(mktemp -d "$folder/cosmati-report.XXXXXX")
trap 'rm -rf "$work"' EXIT
export COSMATI_CACHE=${COSMATI_CACHE:-$work/kernels}
COSMATI_COMMIT=$("$python" "$here/../measure.py") || exit 1
export COSMATI_COMMIT
[ "$backend" = cuda ] && . "$here/libraries.sh"
gpus=0
[ "$backend" = cuda ] && gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
machine="$(nproc) cores, $gpus GPUs"

fits=$(($(df --output=avail -B1 "$folder" | tail -n 1) / 10 * 8 / 12288))
((array > fits)) && array=$fits
latents=$work/latents.txt
awk -v count="$count" 'BEGIN { srand(1); print count; for (i = 0; i < count; i++) { for (j = 0; j < 100; j++) printf "%.6f ", 2 * rand() - 1; print "" } }' >"$latents"

# run ROW REPEAT COMMAND...: records the program's last line of JSON with fields of this script, unless the line exists.
left=0
run() {
  local row=$1 repeat=$2 begin status
  shift 2
  "$python" "$here/report_job.py" have "$lines" "$row" "$repeat" 2>>"$out/log.txt" && return
  if ((SECONDS >= seconds)); then
    left=$((left + 1))
    return
  fi
  begin=$(date +%s.%N)
  timeout $((seconds - SECONDS + 10)) "$@" --json >"$work/stdout" 2>>"$out/log.txt"
  status=$?
  if ((status == 0)); then
    "$python" "$here/report_job.py" add "$lines" "$row" "$repeat" "$begin" "$(date +%s.%N)" "$machine" "$work/stdout" "$*" 2>>"$out/log.txt" || left=$((left + 1))
  else
    echo "$row failed with exit status $status: $*"
    left=$((left + 1))
  fi
  rm -f "$work"/x.*
}
draw=("$cosmati" generate dcgan --backend "$backend")
job=(--input "$latents" --output "$work/x.txt" --image "$work/x.bmp")
npy=(--count "$array" --seed 1 --type f16 --output-type u8)  # in f32 one GPU is slower than the files
ranks=(mpirun --allow-run-as-root --oversubscribe)
[ "$backend" = cuda ] && device=(--gpus 1) || device=()

without_files() { run "without files" "$1" "${draw[@]}" "${device[@]}" --measure host --input "$latents"; }

for ((i = 1; i <= repeats; i++)); do
  run "text, a core" "$i" "${draw[@]}" --measure files --threads 1 --input "$latents" --output /dev/null
  run "text into the file system, a core" "$i" "${draw[@]}" --measure files --threads 1 --input "$latents" --output "$work/x.txt"
  run "files alone" "$i" "${draw[@]}" --measure files "${job[@]}"
  # A processor slows down while it is busy, so the two rows that are divided by each other take turns being first.
  ((i % 2)) && without_files "$i"
  run "report" "$i" "${draw[@]}" "${device[@]}" "${job[@]}"
  ((i % 2)) || without_files "$i"
  ((gpus >= 2)) && run "report, 2 GPUs" "$i" "${draw[@]}" --gpus 2 "${job[@]}"
  if command -v mpirun >/dev/null; then
    for n in 2 4; do run "report, mpirun -n $n" "$i" "${ranks[@]}" -n $n "${draw[@]}" "${job[@]}"; done
  fi
  run "array, f16, alone" "$i" "${draw[@]}" --measure files "${npy[@]}" --output "$work/x.npy"
  run "array, f16" "$i" "${draw[@]}" "${device[@]}" "${npy[@]}" --output "$work/x.npy"
  ((gpus >= 2)) && run "array, f16, 2 GPUs" "$i" "${draw[@]}" --gpus 2 "${npy[@]}" --output "$work/x.npy"
done
if ((gpus >= 2)) && [ -d "$data/mnist" ]; then
  for ((i = 1; i <= repeats; i++)); do
    for n in 1 2; do
      run "train LeNet-5, GPUs: $n" "$i" "$cosmati" train lenet5 --backend cuda --gpus $n --batch $((1024 * n)) --epochs 10 --data "$data/mnist" --save "$work/x.model"
      run "train DCGAN, GPUs: $n" "$i" "$cosmati" train dcgan --backend cuda --gpus $n --batch $((256 * n)) --steps 200 --report 20 --data "$data/mnist" --save "$work/x.model"
    done
  done
elif ((gpus >= 2)); then
  echo "training is skipped: $data has no mnist; pass --data FOLDER"
fi
command -v mpirun >/dev/null || echo "ranks are skipped: mpirun was not found"
"$python" "$here/report_job.py" ratios "$lines"
echo "$left runs are left after $SECONDS s; lines in $lines"
((left == 0))
