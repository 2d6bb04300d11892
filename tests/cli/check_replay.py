"""COSMATI_RECORD and `cosmati replay`: recorded calls, replayed results, and messages about bad lines."""
import json, os, subprocess, sys
import numpy as np
from program import Program

program = Program(sys.argv[1], "cpu")
check, call, file = program.check, program.call, program.file
random = np.random.default_rng(7)
for name, shape in {"a": (17, 33), "b": (33, 9), "bias": (9,), "x": (2, 3, 9, 9), "w": (4, 3, 3, 3), "dy": (2, 4, 7, 7)}.items():
    program.save(name, random.standard_normal(shape).astype(np.float32))
calls = file("calls.jsonl")


def npy(name):
    return file(name + ".npy")


def record(*words, to=calls):
    call("run", *words, "--backend", "cpu", "--out", npy("out"), COSMATI_RECORD=to)


def lines(path):
    with open(path) as stream:
        return [json.loads(line) for line in stream]


gemm = ("gemm", "--a", npy("a"), "--b", npy("b"))
workload = [
    (*gemm, "--operand", "bias=" + npy("bias"), "--epilogue", "relu(scale*acc + bias[n])", "--set", "scale=0.5"),
    (*gemm, "--batch-invariant"),
    ("gemm", "--group", "files", "--a", npy("a") + "," + npy("a"), "--b", npy("b") + "," + npy("b")),
    ("conv", "--x", npy("x"), "--w", npy("w"), "--pad", "1"),
    ("conv", "--dy", npy("dy"), "--w", npy("w"), "--direction", "data", "--input-size", "9,9"),
    ("conv", "--x", npy("x"), "--dy", npy("dy"), "--direction", "filter", "--filter-size", "3,3"),
    ("conv", "--dy", npy("dy"), "--direction", "bias"),
    ("pool", "--x", npy("x"), "--mode", "average", "--window", "3"),
    ("softmax", "--x", npy("x"), "--axis", "1"),
    ("layernorm", "--x", npy("x"), "--axis", "2"),
    ("rmsnorm", "--x", npy("x")),
    ("groupnorm", "--x", npy("x"), "--groups", "1"),
    ("activation", "--function", "gelu", "--x", npy("x")),
    ("reduce", "--x", npy("x"), "--axes", "0,2", "--operation", "mean"),
    ("transform", "--x", npy("x"), "--from", "nchw", "--to", "nhwc"),
    ("elementwise", "--x", npy("x"), "--epilogue", "relu(acc*2 + 0.5)"),
    ("add", "--a", npy("x"), "--b", npy("x")),
    ("lrn", "--x", npy("x"), "--size", "3"),
    ("dropout", "--x", npy("x"), "--probability", "0.3"),
    (*gemm, "--compute", "bf16x6"),
]
for words in workload:
    if words[1:3] == ("--group", "files"):
        call("run", *words, "--backend", "cpu", "--out", npy("d0") + "," + npy("d1"), COSMATI_RECORD=calls)
    else:
        record(*words)
recorded = lines(calls)
subjects = ["gemm-group" if "--group" in words else "row-norm" if words[0].endswith("norm") else words[0] for words in workload]
check([line["subject"] for line in recorded] == subjects, f"recorded subjects: {[line['subject'] for line in recorded]}")
check(all(line["runs"] == 1 for line in recorded), "each ran once")
check([line["batch_invariant"] for line in recorded][:3] == [False, True, False], "which of them is batch-invariant")
check((recorded[0]["problem"]["compute"], recorded[-1]["problem"]["compute"]) == ("exact", "bf16x6"), "how products are computed")
check(recorded[0]["problem"]["epilogue"]["expression"] == "relu(scale * acc + bias[n])", f"the epilogue: {recorded[0]['problem']['epilogue']}")
check(recorded[0]["problem"]["a"] == {"type": "f32", "extents": [1, 17, 33], "strides": [561, 33, 1], "alignment": 16},
      f"a: {recorded[0]['problem']['a']}")

# Repeated runs of one problem are one line; without a request nothing is written.
counted = file("counted.jsonl")
call("bench", "gemm", "--size", "32x16x64", "--layout", "tn", "--epilogue", "acc", "--backend", "cpu", "--slices", 1, "--slice-seconds", 0.01, COSMATI_RECORD=counted)
check(len(lines(counted)) == 1 and lines(counted)[0]["runs"] > 10, f"counted: {[line['runs'] for line in lines(counted)]}")
before = os.path.getsize(calls)
record(*gemm, to="")
check(os.path.getsize(calls) == before, "an empty name records nothing")

# Processes that exit at the same time do not tear lines.
shared = file("shared.jsonl")
several = [subprocess.Popen([sys.argv[1], "run", *gemm, "--backend", "cpu", "--out", npy(f"out{i}")], env={**os.environ, "COSMATI_RECORD": shared},
                            stdout=subprocess.DEVNULL) for i in range(6)]
check([one.wait(60) for one in several] == [0] * 6 and len(lines(shared)) == 6, "six processes, six lines")

# Verified and measured.
done = call("replay", calls, "--backend", "cpu", "--json")
verdicts = [json.loads(line) for line in done.stdout.splitlines()]
check([line["subject"] for line in verdicts] == subjects and all(line["correct"] for line in verdicts), "all are verified, in their order")
check(verdicts[1]["kernel"] == "in_order", f"a batch-invariant plan is replayed as one, not by {verdicts[1]['kernel']}")
check(verdicts[0]["elements"] == 17 * 9, "of the recorded size")
done = call("replay", counted, "--bench", "--backend", "cpu", "--slices", 1, "--slice-seconds", 0.01, "--json", "--peer", "onednn")
line = json.loads(done.stdout)
check(line["verb"] == "bench" and line["subject"] == "gemm" and line["verified"] and line["ratio"] > 0, f"bench: {done.stdout[:200]}")
check(0 < line["host_seconds"] < line["median_seconds"], f"host_seconds {line['host_seconds']} of {line['median_seconds']}")
done = call("replay", counted, "--bench", "--backend", "cpu", "--slices", 1, "--slice-seconds", 0.01, "--peer", "onednn", "--fail-below", 1e6, expect=1)

# Skipped calls are reported and counted.
mixed = file("mixed.jsonl")
with open(calls) as stream, open(mixed, "w") as out:
    out.write(stream.readline())
    out.write('{"record":1,"subject":"gather","backend":"cuda","kernel":"composed","batch_invariant":false,"problem":{},"runs":3}\n')
done = call("replay", mixed, "--backend", "cpu")
check("mixed.jsonl, line 2, skipped: gather is not an operation" in done.stderr and "1 of 2 lines" in done.stdout, f"skipped: {done.stderr} {done.stdout[-80:]}")

# The numbers of an optimizer's step in memory, as trainings record them.
flat = {"type": "f32", "extents": [1000], "strides": [1], "alignment": 16}
step = file("step.jsonl")
with open(step, "w") as out:
    for kind, scaling in (("adam", None), ("sgd", {**flat, "extents": [2]})):
        problem = {"kind": kind, "parameter": flat, "gradient": flat, "state": flat, "momentum": 0.9, "nesterov": False, "weight_decay": 0.0, "beta1": 0.5,
                   "beta2": 0.999, "epsilon": 1e-8, "numbers": {**flat, "extents": [3]}, "scaling": scaling}
        out.write(json.dumps({"record": 1, "subject": "optimizer", "backend": "cpu", "kernel": "own", "batch_invariant": False, "problem": problem, "runs": 1}) + "\n")
verdicts = [json.loads(line) for line in call("replay", step, "--backend", "cpu", "--json").stdout.splitlines()]
check([line["correct"] for line in verdicts] == [True, True], f"steps of optimizers: {verdicts}")

# Lines of earlier versions lack how products are computed.
earlier = file("earlier.jsonl")
with open(calls) as stream, open(earlier, "w") as out:
    out.write(stream.readline().replace(',"compute":"exact"', ""))
check("compute" not in open(earlier).read() and "1 of 1 lines" in call("replay", earlier, "--backend", "cpu").stdout, "a line without \"compute\" replays")

# Bad lines: the message has the file, the line number and the key.
good = open(calls).readline()
for bad, words in ((good.replace('"f32"', '"f33"', 1), "f33"), (good.replace('[1,17,33]', '[1,17,34]', 1), "must be 34"), ('{"record":1}\n', '"subject" is missing'),
                   (good.replace('"record":1', '"record":2'), '"record" is 2'), (good.replace('"subject":"gemm"', '"subject":"gem"'), '"subject" is "gem"'),
                   (good[:-9] + "\n", "not valid JSON"), (good.replace('"strides":[561,33,1]', '"strides":[561,33]', 1), "3 extents and 2 strides"),
                   (good.replace("scale * acc", "scale * ", 1), ""), (good.replace('"by_pointers":false', '"by_pointers":0'), '"by_pointers" is 0')):
    with open(file("bad.jsonl"), "w") as out:
        out.write(good + bad)
    done = call("replay", file("bad.jsonl"), "--backend", "cpu", expect=2)
    check("bad.jsonl, line 2" in done.stderr and words in done.stderr, f"a bad line ({words}): {done.stderr.strip()}")
call("replay", file("nowhere.jsonl"), expect=2)
call("replay", calls, "--hot", expect=2)
call("replay", calls, "--bench", "--verify", expect=2)
call("replay", calls, "--bench", "--peer", "mkl", expect=2)
call("run", *gemm, "--backend", "cpu", "--out", npy("out"), expect=2, COSMATI_RECORD="/nowhere/calls.jsonl")

print(f"{program.checks} checks, {len(program.failures)} failed")
sys.exit(1 if program.failures else 0)
