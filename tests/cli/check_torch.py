"""`bench --peer torch`: the requests to PyTorch's process, its results against ours, and the messages if PyTorch is missing.

usage: check_torch.py PROGRAM [--real]
Without --real it uses a stand-in for PyTorch (fake_torch.py); with --real PyTorch itself, in the Python that
COSMATI_PYTHON names or in python3; skipped (exit status 77) if that has no PyTorch.
"""
import json, os, subprocess, sys
import numpy as np
from program import Program

program = Program(sys.argv[1], "cpu")
check, call = program.check, program.call
fake = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_torch.py")
log = program.file("requests.jsonl")
quick = ("--backend", "cpu", "--slices", 2, "--slice-seconds", 0.01, "--json", "--peer", "torch")


def line_of(done):
    return json.loads(done.stdout) if done.stdout.startswith("{") else {}


def bench(*words, expect=0, **environment):
    return call("bench", *words, *quick, expect=expect, COSMATI_PYTHON=fake, **environment)


def refused(done, *words):
    for word in words:
        check(word in done.stderr and done.stderr.count("\n") <= 1, f"no {word!r} in: {done.stderr.strip()}")


def with_the_fake():
    line = line_of(bench("softmax", "--size", "20x30", "--threads", 1, FAKE_TORCH_LOG=log))
    for key, value in {"peer": "torch", "peer_version": "PyTorch of the fake", "peer_seconds": 1e-3, "peer_verified": True, "peer_tried": 2,
                       "peer_algorithm": "eager", "peer_interface": "eager", "peer_refusal": None}.items():
        check(line.get(key) == value, f"{key} is {line.get(key)}, not {value}")
    check(line.get("ratio", 0) > 0, f"the ratio is {line.get('ratio')}")
    with open(log) as file:
        requests = [json.loads(one) for one in file]
    first = requests[0]
    check(first["subject"] == "softmax" and first["problem"]["axis"] == 1 and first["device"] == "cpu" and first["threads"] == 1,
          f"the problem: {first}")
    check(first["sets"] == line["buffers"] and not first["graphs"], f"sets: {first['sets']}, {line['buffers']}")
    check([(slot["name"], slot["role"], slot["extents"], slot["offset"] % 64) for slot in first["slots"]] ==
          [("x", "input", [20, 30], 0), ("y", "output", [20, 30], 0)], f"slots: {first['slots']}")
    check([next(iter(one)) for one in requests[1:]] == ["time"] * 3 + ["result"], f"then {requests[1:]}: warm, two slices, the result")

    for words in ((), ("--verify-below", 1)):  # complete by the reference; some elements against ours
        check(line_of(bench("softmax", "--size", "20x30", *words)).get("peer_verified") is True, f"right {words}")
        check(line_of(bench("softmax", "--size", "20x30", *words, FAKE_TORCH="wrong")).get("peer_verified") is False, f"wrong {words}")
    x, calls = program.save("x", np.ones((4, 6), np.float32)), program.file("calls.jsonl")
    call("run", "softmax", "--x", x, "--backend", "cpu", "--out", program.file("y.npy"), COSMATI_RECORD=calls)
    replayed = line_of(call("replay", calls, "--bench", *quick, COSMATI_PYTHON=fake))
    check(replayed.get("peer") == "torch" and replayed.get("peer_verified") is True, f"replayed: {replayed}")
    # A suite continues with its next problem in the same process.
    lines = bench("softmax", "--size", "20x30,40x50", FAKE_TORCH="refuses").stdout.splitlines()
    check([json.loads(one)["peer_refusal"] for one in lines] == ["the fake refuses"] * 2, f"refusals: {lines}")
    check(all(json.loads(one)["ratio"] is None and json.loads(one)["median_seconds"] > 0 for one in lines), "ours is measured")
    refused(bench("softmax", "--size", "20x30", expect=3, FAKE_TORCH="dies"), "peer torch", "exited during a measurement")
    refused(bench("softmax", "--size", "20x30", expect=3, FAKE_TORCH="absent"), "No module named 'torch'", "--python", "COSMATI_PYTHON")
    refused(bench("softmax", "--size", "20x30", "--python", "/nowhere/python", expect=3), "/nowhere/python", "--python")
    refused(bench("softmax", "--size", "20x30", "--python", "/bin/true", expect=3), "/bin/true", "exited without an answer")
    refused(bench("pool", "--size", "2x3x8x8", "--misalign", 4, expect=3), "--misalign")
    small = ("bench", "softmax", "--size", "20x30", "--backend", "cpu")
    refused(call(*small, "--python", fake, expect=2), "--python", "missing option --peer torch")
    refused(call(*small, "--python", fake, "--peer", "onednn", expect=2), "--python", "missing option --peer torch")
    refused(call(*small, "--peer-log", program.file("log"), expect=2), "--peer-log", "missing option --peer NAME")
    refused(call(*small, "--same-layout", expect=2), "--same-layout", "missing option --peer cudnn")
    refused(call("bench", "softmax", "--size", "20x30", "--backend", "reference", "--peer", "torch", expect=3), "cuda or cpu")


CASES = """
conv --size 2x8x12x12x8x3x3 --pad 1
conv --size 2x8x12x12x8x3x3 --pad 1 --layout nhwc
conv --size 2x8x12x12x8x3x3 --pad 1 --layout chwn --stride 2
conv --size 2x8x12x12x8x3x3 --direction data --dilation 2
conv --size 2x8x12x12x8x3x3 --direction data --type tf32 --pad 1
conv --size 2x8x12x12x8x3x3 --direction filter --groups 2
pool --size 2x3x8x8
pool --size 2x3x9x9 --ceil
pool --size 2x3x8x8 --mode average --layout nhwc
pool --size 2x3x8x8 --direction backward
pool --size 2x3x8x8 --direction backward --layout nhwc
pool --size 2x3x8x8 --direction backward --mode average-with-padding --window 3,3 --stride 2,2 --pad 1
batchnorm --size 2x3x8x8
batchnorm --size 2x3x8x8 --training
batchnorm --size 2x3x8x8 --training --layout nhwc
batchnorm --size 2x3x8x8 --direction backward
layernorm --size 20x30
layernorm --size 4x5x30 --axis 1
layernorm --size 20x30 --direction backward
rmsnorm --size 20x30
groupnorm --size 3x12x5x5 --groups 4
groupnorm --size 3x12x5x5 --groups 4 --layout nhwc
groupnorm --size 3x12 --groups 3 --direction backward
groupnorm --size 3x12x5x5 --groups 4 --direction backward
lrn --shape 2x8x5x5
lrn --shape 2x8x5x5 --direction backward
softmax --size 20x30 --log
softmax --size 20x30x4 --axis 1 --direction backward
softmax --size 20x30 --log --direction backward
cross-entropy --size 20x30
cross-entropy --size 20x30 --direction backward
reduce --size 20x30 --axes 0
reduce --size 20x30 --axes 1 --operation mean
reduce --size 20x30 --operation max
reduce --size 20x30 --axes 0 --operation sum-of-squares
add --size 100x3
add --size 100x3 --alpha 0.5 --beta 2
transform --size 2x8x9x9 --to nhwc
elementwise --size 2x3x4x5 --epilogue relu(acc*scale[c]+bias[c])+residual[n,c,h,w]
elementwise --size 30x20 --epilogue select(acc>0.5,max(acc,b[n]),clamp(acc,-1,1)*a[m])
elementwise --size 500 --epilogue tanh(acc)*gelu_tanh(acc)-abs(acc)
""" + "".join(f"activation --size 500 --function {name}{direction}\n" for direction in ("", " --direction backward") for name in
              ("relu", "leaky_relu", "elu", "sigmoid", "tanh", "scaled_tanh", "gelu", "gelu_tanh", "silu"))


def with_pytorch():
    python = os.environ.get("COSMATI_PYTHON") or "python3"
    found = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if found.returncode != 0:
        print(f"SKIPPED: {python} has no PyTorch ({(found.stderr.strip().splitlines() or ['?'])[-1]}); COSMATI_PYTHON names one that has")
        sys.exit(77)
    # All problems of a subject run in one call and one process if their options allow it.
    for words in CASES.strip().splitlines():
        line = line_of(call("bench", *words.split(), *quick, COSMATI_PYTHON=python))
        check(line.get("peer_verified") is True and line.get("peer_refusal") is None,
              f"{words}: {line.get('peer_verified')}, {line.get('peer_refusal')}")
    for words, why in (("conv --size 2x8x12x12x8x3x3 --pad 0,1,0,1", "pads both sides equally"), ("lrn --shape 2x8x5x5 --size 4", "window of 4"),
                       ("rmsnorm --size 20x30 --direction backward", "on GPUs only"),
                       ("dropout --size 100", "not for dropout"), ("elementwise --size 9 --set alpha=2 --epilogue alpha*acc", "without alpha"), ("gemm --size 8x8x8", "not for gemm")):
        line = line_of(call("bench", *words.split(), *quick, COSMATI_PYTHON=python))
        check(why in (line.get("peer_refusal") or ""), f"{words}: {line.get('peer_refusal')}")


with_pytorch() if "--real" in sys.argv[2:] else with_the_fake()
print(f"{program.checks} checks, {len(program.failures)} failures")
sys.exit(1 if program.failures else 0)
