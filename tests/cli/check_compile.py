#!/usr/bin/python3
"""Random problems of every operation and type, planned for GPUs that are not installed: every kernel that supports one compiles.

usage: check_compile.py COSMATI [--count N] [--seed N] [--architectures sm_90a,sm_80,sm_75] [--subjects gemm,conv,...]

Skipped (exit status 77) where there is no NVRTC. Kernels that keep more than MOST_LOCAL_BYTES a thread in local memory are
failures, too: that indicates not spilled registers, but an array that was meant for registers.
"""
import argparse, json, os, subprocess, sys, tempfile, time
from program import Program

SUBJECTS = ("gemm", "conv", "pool", "activation", "batchnorm", "layernorm", "rmsnorm", "groupnorm", "lrn", "softmax", "cross-entropy", "rbf", "dropout", "transform", "reduce", "add",
            "elementwise", "sgd", "adam")
MOST_LOCAL_BYTES = 2048

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--count", type=int, default=1)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--architectures", default="sm_90a,sm_80,sm_75")
parser.add_argument("--subjects", default=",".join(SUBJECTS))
parser.add_argument("--types", default="all")
parser.add_argument("--chosen", action="store_true", help="only the kernel that the plan chooses")
arguments = parser.parse_args()

program = Program(os.path.abspath(arguments.program), "cuda")
info = [json.loads(line) for line in program.call("info", "--json").stdout.splitlines()]
if not next(line["here"] for line in info if line["name"] == "NVRTC"):
    print("SKIPPED: there is no NVRTC here; not one kernel was compiled")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="cosmati-kernels-") as folder:
    for architecture in arguments.architectures.split(","):
        for subject in arguments.subjects.split(","):
            start = time.time()
            words = ["compile", subject, "--count", arguments.count, "--seed", arguments.seed, "--arch", architecture, "--type", arguments.types,
                     "--cache", folder, "--json"] + ([] if arguments.chosen else ["--each-kernel"])
            done = subprocess.run([program.path, *map(str, words)], capture_output=True, text=True)
            program.check(done.returncode == 0, f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            for line in lines:
                what = f"{architecture} {subject} {line['problem']} {line['type']} by {line['kernel']}, {line['policy']}"
                program.check(line["failure"] is None, f"{what}: {line['failure']}")
                program.check(line["local_bytes"] <= MOST_LOCAL_BYTES, f"{what}: {line['local_bytes']} bytes of local memory a thread")
            compiled = sum(not line["cached"] for line in lines)
            print(f"{architecture} {subject}: {len(lines)} kernels, {compiled} compiled, {time.time() - start:.1f} s", flush=True)
program.finish()
