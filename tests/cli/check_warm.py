#!/usr/bin/python3
"""`cosmati warm`: afterward no number of tokens needs the compiler, even from a folder that cannot be written.

usage: check_warm.py COSMATI     exit status 77 where there is no NVRTC
"""
import json
import os
import random
import subprocess
import sys
import tempfile

COSMATI = os.path.abspath(sys.argv[1])
MODEL = """# Two layers of a small model
subject: gemm
about: two layers
--size 192xTOKENSx64 --type f16 --layout tn
--size 64xTOKENSx192 --type f16 --layout tn --epilogue acc+residual[m,n]
"""
LAYERS = (["--m", "192", "--k", "64"], ["--m", "64", "--k", "192", "--epilogue", "acc+residual[m,n]"])
failures = []


def expect(what, condition, detail=""):
    if not condition:
        failures.append(what)
        print(f"FAIL {what}: {str(detail)[:1500]}")


def run(*words, **environment):
    return subprocess.run([COSMATI, *map(str, words)], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment})


def main(folder):
    model, kernels = f"{folder}/model.txt", f"{folder}/kernels"
    with open(model, "w", encoding="utf-8") as file:
        file.write(MODEL)
    words = ["warm", "--model", model, "--arch", "sm_90a", "--tokens", "1:160:1", "--out", kernels, "--json"]
    first = run(*words)
    if first.returncode == 3 and "NVRTC" in first.stderr:
        print("SKIPPED: NVRTC is not installed")
        sys.exit(77)
    expect("status 0", first.returncode == 0, first)
    record = json.loads(first.stdout)
    expect("each kernel once", record["problems"] == 320 and 2 <= record["kernels"] <= 40 and record["compiled"] == record["kernels"], record)
    expect("one file a kernel", len([name for name in os.listdir(kernels) if not name.startswith(".")]) == record["kernels"], os.listdir(kernels))
    again = json.loads(run(*words).stdout)
    expect("nothing is compiled twice", again["compiled"] == 0 and again["kernels"] == record["kernels"], again)

    # Any number of tokens, from a folder that this process does not write to.
    tokens = sorted(random.Random(5).sample(range(1, 161), 60))
    for layer in LAYERS:
        done = run("compile", "gemm", *layer, "--n", ",".join(map(str, tokens)), "--type", "f16", "--layout", "tn", "--arch", "sm_90a",
                   "--cache", f"{folder}/empty", "--json", COSMATI_CACHE_SHARED=kernels)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        missing = [line["problem"] for line in lines if not line["cached"]]
        expect(f"{layer}: nothing is compiled", len(lines) == len(tokens) and not missing, (done.stderr, missing))
    more = json.loads(run("compile", "gemm", *LAYERS[0], "--n", 7, "--type", "bf16", "--layout", "tn", "--arch", "sm_90a",
                          "--cache", f"{folder}/empty", "--json", COSMATI_CACHE_SHARED=kernels).stdout)
    expect("another type is compiled", not more["cached"], more)

    for words, sentence in ((["--model", f"{folder}/nowhere"], "is neither a file nor a known model; models: llama-8b"),
                            ([], "missing required option --model NAME|FILE"),
                            (["--model", model, "--tokens", "x"], "'x'"), (["--model", model, "--arch", "sm_1"], "sm_1")):
        done = run("warm", *words)
        expect(f"{words} is refused", done.returncode == 2 and sentence in done.stderr, done)


with tempfile.TemporaryDirectory() as temporary:
    main(temporary)
print(f"{len(failures)} failed")
sys.exit(1 if failures else 0)
