#!/usr/bin/python3
"""Random problems of every operation and type, planned for GPUs that are not installed: every kernel that supports one compiles.

usage: check_compile.py COSMATI [--count N] [--seed N] [--architectures sm_90a,sm_80,sm_75] [--subjects gemm,conv,...]

Skipped (exit status 77) if there is no NVRTC. Kernels that keep more than MOST_LOCAL_BYTES per thread in local memory are failures,
too: that much indicates not spilled registers, but an array that was meant for registers. For the architectures of --chosen-for,
only the kernels that plans choose, in f16, are compiled; an architecture that the installed NVRTC does not know is skipped and counted.
"""
import argparse, json, os, subprocess, sys, tempfile, time
from program import Program

SUBJECTS = ("gemm", "conv", "pool", "activation", "batchnorm", "layernorm", "rmsnorm", "groupnorm", "lrn", "softmax", "cross-entropy", "rbf", "dropout", "transform", "reduce", "add",
            "elementwise", "sgd", "adam")
# Problems of kernels that random problems rarely reach.
SELDOM = ("--size 2x24x9x7x40x1x1 --direction filter --kernel wgrad_pointwise", "--size 2x17x9x7x40x1x1 --direction filter --kernel wgrad_pointwise",
          "--size 2x24x9x7x40x1x1 --kernel fprop_small_c", "--size 2x24x9x7x40x3x3 --pad 1 --direction filter --kernel wgrad_small_c")
MOST_LOCAL_BYTES = 2048

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--count", type=int, default=1)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--architectures", default="sm_90a,sm_80,sm_75")
parser.add_argument("--chosen-for", default="sm_86,sm_87,sm_89,sm_100a,sm_103a,sm_110a,sm_120a,sm_121a")
parser.add_argument("--subjects", default=",".join(SUBJECTS))
parser.add_argument("--types", default="all")
parser.add_argument("--chosen", action="store_true", help="only the kernel that the plan chooses")
arguments = parser.parse_args()

program = Program(os.path.abspath(arguments.program), "cuda")
info = [json.loads(line) for line in program.call("info", "--json").stdout.splitlines()]
if not next(line["here"] for line in info if line["name"] == "NVRTC"):
    print("SKIPPED: there is no NVRTC here; not one kernel was compiled")
    sys.exit(77)


def run(architecture, subject, words, folder):
    """Returns False if NVRTC does not know the architecture."""
    start = time.time()
    words = ["compile", subject, "--arch", architecture, "--cache", folder, "--json", *words]
    done = subprocess.run([program.path, *map(str, words)], capture_output=True, text=True)
    if "unknown architecture" in done.stderr:
        return False
    program.check(done.returncode == 0, f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in lines:
        what = f"{architecture} {subject} {line['problem']} {line['type']} by {line['kernel']}, {line['policy']}"
        program.check(line["failure"] is None, f"{what}: {line['failure']}")
        program.check(line["local_bytes"] <= MOST_LOCAL_BYTES, f"{what}: {line['local_bytes']} bytes of local memory a thread")
    compiled = sum(not line["cached"] for line in lines)
    print(f"{architecture} {subject}: {len(lines)} kernels, {compiled} compiled, {time.time() - start:.1f} s", flush=True)
    return True


def compile_for(architecture, subject, types, chosen, folder):
    return run(architecture, subject, ["--count", arguments.count, "--seed", arguments.seed, "--type", types] + ([] if chosen else ["--each-kernel"]), folder)


with tempfile.TemporaryDirectory(prefix="cosmati-kernels-") as folder:
    for architecture in arguments.architectures.split(","):
        for subject in arguments.subjects.split(","):
            program.check(compile_for(architecture, subject, arguments.types, arguments.chosen, folder), f"NVRTC does not know {architecture}")
    if "conv" in arguments.subjects:
        for architecture in ("sm_80", "sm_90a"):
            for words in SELDOM:
                run(architecture, "conv", ["--type", "f16", "--layout", "nhwc", *words.split()], folder)
    others = [architecture for architecture in arguments.chosen_for.split(",") if architecture]
    known = [architecture for architecture in others if compile_for(architecture, "gemm", "f16", True, folder)]
    for architecture in known:
        compile_for(architecture, "conv", "f16", True, folder)
    print(f"{len(known)} of {len(others)} other architectures are known to this NVRTC")
program.finish()
