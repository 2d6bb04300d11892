#!/usr/bin/python3
"""A stand-in for a Python with PyTorch in tests of `bench --peer torch`: answers like cli/bench/peers/torch_peer.py, with numpy.

FAKE_TORCH selects a fault: "absent", "wrong" results, "dies", "refuses". Requests are appended to the file FAKE_TORCH_LOG.
"""
import json, mmap, os, sys
import numpy as np

mode, log = os.environ.get("FAKE_TORCH", ""), os.environ.get("FAKE_TORCH_LOG")
NUMBERS = {"f32": np.float32, "tf32": np.float32, "f64": np.float64, "f16": np.float16}


def answer(**words):
    print(json.dumps(words), flush=True)


if mode == "absent":
    answer(refusal="No module named 'torch'")
    sys.exit()
answer(version="PyTorch of the fake", cuda=True)
memory = problem = None
for line in sys.stdin:
    request = json.loads(line)
    if log:
        with open(log, "a") as file:
            file.write(line)
    if "problem" in request:
        problem = request
        memory = mmap.mmap(3, request["bytes"])
        if mode == "refuses":
            answer(refusal="the fake refuses")
        else:
            answer(way="eager", layout="", ways=2, failures=[])
    elif "time" in request:
        if mode == "dies":
            sys.exit()
        answer(median=2e-3, least=1e-3, samples=7)
    elif "result" in request:
        slots = {}
        for slot in problem["slots"]:
            kind = NUMBERS[slot["type"]]
            span = 1 + sum((n - 1) * s for n, s in zip(slot["extents"], slot["strides"]))
            flat = np.frombuffer(memory, kind, span, slot["offset"])
            strides = [s * flat.itemsize for s in slot["strides"]]
            slots[slot["name"]] = np.lib.stride_tricks.as_strided(flat, slot["extents"], strides, writeable=True)
        if problem["subject"] == "gemm":
            slots["d"][...] = np.matmul(slots["a"].astype(np.float64), slots["b"].astype(np.float64))
            written = slots["d"]
        else:  # softmax
            e = np.exp(slots["x"].astype(np.float64))
            slots["y"][...] = e / e.sum(problem["problem"]["axis"], keepdims=True)
            written = slots["y"]
        if mode == "wrong":
            written[tuple(n // 2 for n in written.shape)] += 1
            written[tuple(0 for n in written.shape)] += 1
        answer()
    else:
        answer()
