"""Host time of repeated calls from Python, in microseconds: JSON Lines on stdout, the median of 9 times CALLS calls.

usage: PYTHON bench/python_calls.py [CALLS]     CALLS (default: 2000). PYTHON: one with the package cosmati; PyTorch's calls are measured if it is installed, on a GPU if it finds one
A product on a GPU is enqueued: its time is not part of a call as long as the GPU keeps up with the host, as it does up to 64 x 64.
"""
import importlib
import json
import statistics
import sys
import time

import numpy

import cosmati

CALLS, ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000, 9


def microseconds(call, wait):
    samples = []
    for _ in range(ROUNDS):
        wait()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        samples.append((time.perf_counter() - start) / CALLS * 1e6)
    return round(statistics.median(samples), 2)


def report(size, **calls):
    wait = calls.pop("wait", lambda: None)
    print(json.dumps({"size": size, **{name: call if isinstance(call, str) else microseconds(call, wait) for name, call in calls.items()}}), flush=True)


def main():
    for size in (4, 64):
        a = numpy.ones((size, size), numpy.float32)
        out, bias = numpy.empty_like(a), numpy.ones(size, numpy.float32)
        report(size, library="numpy " + numpy.__version__, gemm=lambda: cosmati.gemm(a, a), gemm_out=lambda: cosmati.gemm(a, a, out=out),
               gemm_epilogue=lambda: cosmati.gemm(a, a, epilogue="relu(acc + bias[n])", bias=bias), peer=lambda: a @ a, peer_out=lambda: numpy.matmul(a, a, out=out))
    try:
        import torch

        importlib.import_module("cosmati.torch")  # registers the operators
    except ImportError:
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for dtype in (torch.float32, torch.float16):
        for size in (16, 64):
            a = torch.ones(size, size, device=device, dtype=dtype)
            out, bias = torch.empty_like(a), torch.ones(size, device=device, dtype=dtype)
            report(size, wait=wait, library=f"torch {torch.__version__} {device} {dtype}", gemm=lambda: cosmati.gemm(a, a), gemm_out=lambda: cosmati.gemm(a, a, out=out),
                   gemm_epilogue=lambda: cosmati.gemm(a, a, epilogue="relu(acc + bias[n])", bias=bias), operator=lambda: torch.ops.cosmati.gemm(a, a),
                   new_result=lambda: torch.empty_like(a), peer=lambda: torch.mm(a, a), peer_out=lambda: torch.mm(a, a, out=out))


if __name__ == "__main__":
    main()
