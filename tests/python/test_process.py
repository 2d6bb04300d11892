"""Processes that use the package: threads, forks, imports; and claims of the documents."""
import ast
import doctest
import importlib
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import cosmati

ROOT = pathlib.Path(__file__).parents[2]


def test_threads():
    """Eight threads that make the same plans concurrently."""
    wrong = []
    start = threading.Barrier(8)

    def work(seed):
        random = np.random.default_rng(seed)
        start.wait()
        for size in range(5, 45):
            a, b = (random.integers(-3, 4, (size, size)).astype(np.float32) for _ in range(2))
            if (cosmati.gemm(a, b, epilogue=f"acc + {size}") != a @ b + size).any():
                wrong.append((seed, size))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_gil_is_released():
    """Another thread continues while a product is computed."""
    a = np.ones((400, 400), np.float32)
    plan = cosmati.plan_gemm(a, a, kernel="reference")
    count, done = 0, threading.Event()
    worker = threading.Thread(target=lambda: (plan(a, a), done.set()))
    worker.start()
    while not done.is_set():
        time.sleep(0.001)
        count += 1
    worker.join()
    assert count > 5


FORK = """
import os, numpy as np, cosmati
a = np.ones((300, 300), np.float32)
before = cosmati.gemm(a, a)
child = os.fork()
if child == 0:
    right = (cosmati.gemm(a, a) == before).all() and (cosmati.gemm(a[:7], a) == 300).all()
    os._exit(0 if right else 1)
assert os.waitpid(child, 0)[1] == 0
assert (cosmati.gemm(a, a) == before).all()
"""


def test_fork():
    """In a separate process, since JAX's threads do not survive a fork."""
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)


INTERRUPTED = """
import os, signal, threading, numpy as np, cosmati
a, out = np.ones((500, 500), np.float32), np.zeros((500, 500), np.float32)
plan = cosmati.plan_gemm(a, a, out=out, kernel="reference")
threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(10000):
        plan(a, a, out=out)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", (out == 500).all())
print(cosmati.gemm(a, a)[0, 0])
"""


def test_interrupt():
    """Ctrl-C takes effect when the call that computes returns; later calls work."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["interrupted", "True", "500.0"]


NO_GPU = """
import cosmati

class OnGpu:
    __cuda_array_interface__ = {"typestr": "<f4", "shape": (4, 4), "data": (0, False), "version": 3}

try:
    cosmati.gemm(OnGpu(), OnGpu(), out=OnGpu())
except cosmati.NotAvailableError as error:
    print("refused:", error)
"""


def test_not_available():
    """An array claims to be on a GPU, but no GPU is visible."""
    done = subprocess.run([sys.executable, "-c", NO_GPU], capture_output=True, text=True, check=True, timeout=60,
                          env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.stdout.startswith("refused: ") and "cuda" in done.stdout.lower()


def test_import_needs_nothing():
    """Loads neither numpy nor the libraries that are opened by name on first use, and takes less than 50 ms of CPU time."""
    text = ("import time; begin = time.process_time(); import cosmati; took = time.process_time() - begin; import sys; "
            "maps = open('/proc/self/maps').read(); print(took, 'numpy' in sys.modules, 'libcuda' in maps, 'dnnl' in maps)")
    told = [subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split() for _ in range(5)]
    assert all(one[1:] == ["False", "False", "False"] for one in told)
    assert min(float(one[0]) for one in told) < 0.05


@pytest.mark.parametrize("module", ["_products", "_convolutions", "_layers"])
def test_examples_of_docstrings(module):
    failed, attempted = doctest.testmod(importlib.import_module("cosmati." + module))
    assert attempted > 0 and failed == 0


@pytest.mark.parametrize("document", ["README.md", "docs/python.md", "docs/start/numpy.md"])
def test_examples_of_documents(document):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        if "import cosmati" in block and "import torch" not in block:
            exec(block, {})


def test_program():
    program = os.path.join(os.path.dirname(sys.executable), "cosmati")
    told = subprocess.run([program, "list", "suites"], capture_output=True, text=True, check=True).stdout
    assert "resnet50" in told
    told = subprocess.run([program, "generate", "dcgan", "--count", "1", "--image", "/dev/null", "--help"], capture_output=True, text=True)
    assert told.returncode == 0


def test_benchmark_of_calls():
    told = subprocess.run([sys.executable, ROOT / "bench" / "python_calls.py", "2"], capture_output=True, text=True, check=True).stdout.splitlines()
    first = json.loads(told[0])
    assert first["size"] == 4 and min(first[name] for name in ("gemm", "gemm_out", "gemm_epilogue")) > 0


def test_every_public_function_is_documented():
    for name in cosmati.__all__:
        thing = getattr(cosmati, name)
        assert thing.__doc__, name
        if callable(thing) and not isinstance(thing, type) and name != "log_softmax":
            assert ">>>" in thing.__doc__, name
    assert (pathlib.Path(cosmati.__file__).parent / "py.typed").exists()


def test_stubs_say_what_functions_take():
    """Names, order and defaults of arguments agree, and none is missing on either side."""
    package = pathlib.Path(cosmati.__file__).parent
    stubs = {one.name: one for one in ast.parse((package / "__init__.pyi").read_text()).body if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
    annotated = cosmati._layers.__all__  # in place; the stub imports them
    assert sorted([*stubs, *annotated]) == cosmati.__all__
    for name in annotated:
        signature = inspect.signature(getattr(cosmati, name))
        assert inspect.Signature.empty not in [signature.return_annotation, *(one.annotation for one in signature.parameters.values())], name
    for name, stub in stubs.items():
        if isinstance(stub, ast.FunctionDef):
            for argument in ast.walk(stub):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
            signature = inspect.signature(getattr(cosmati, name))
            plain = signature.replace(parameters=[one.replace(annotation=one.empty) for one in signature.parameters.values()])
            written = {}
            exec(f"def stub({ast.unparse(stub.args)}): pass", written)
            assert inspect.signature(written["stub"]) == plain, name
