#!/usr/bin/python3
"""Opens libcosmati.so by dlopen, like Python, Julia or a plug-in, and computes with it through its C interface.

usage: check_dlopen.py SPARE_TLS LIBRARY...     the first LIBRARY is libcosmati.so, the others are its modules; SPARE_TLS is
                                                the library of spare_tls.c. Exit status 1 and a line for what is wrong.
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p

THREADS = 8
F32 = 1
BAD_REQUEST = 1


class Tensor(Structure):
    _fields_ = [("type", c_int32), ("rank", c_int32), ("extent", c_int64 * 6), ("stride", c_int64 * 6), ("alignment", c_int64)]


class Gemm(Structure):
    _fields_ = [("size", c_size_t), ("a", Tensor), ("b", Tensor), ("c", Tensor), ("d", Tensor), ("epilogue", c_char_p),
                ("epilogue_tensors", c_void_p), ("epilogue_tensor_count", c_size_t), ("accumulate_in_f16", c_int32),
                ("by_pointers", c_int32), ("bf16_products", c_int32), ("tf32_products", c_int32), ("fast_accumulation", c_int32)]


class Argument(Structure):
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("value", c_double)]


def require(holds, message):
    if not holds:
        sys.exit(message)


def opened(path):
    library = ctypes.CDLL(path)
    library.cosmati_last_error.restype = c_char_p
    library.cosmati_plan_workspace.restype = c_size_t
    library.cosmati_plan_workspace.argtypes = [c_void_p]
    library.cosmati_create.argtypes = [c_char_p, c_char_p, POINTER(c_void_p)]
    library.cosmati_gemm_problem.argtypes = [POINTER(Gemm), POINTER(c_void_p)]
    library.cosmati_make_plan.argtypes = [c_void_p, c_void_p, c_char_p, POINTER(c_void_p)]
    library.cosmati_run.argtypes = [c_void_p, POINTER(Argument), c_size_t, c_void_p, c_size_t, c_void_p]
    for name in ("cosmati_destroy", "cosmati_problem_destroy", "cosmati_plan_destroy"):
        getattr(library, name).argtypes = [c_void_p]
        getattr(library, name).restype = None
    return library


def matrix(rows, columns):
    return Tensor(F32, 2, (c_int64 * 6)(rows, columns), (c_int64 * 6)(columns, 1), 4)


def multiply(library, backend, m, n, k, seed):
    """Returns the largest deviation of a product of small integers, which must be exact, from Python's result."""
    def done(status):
        require(status == 0, f"{backend}: status {status}: {library.cosmati_last_error()}")
    a = [(seed + 3 * i) % 11 - 5 for i in range(m * k)]
    b = [(seed + 7 * i) % 13 - 6 for i in range(k * n)]
    handle, problem, plan = c_void_p(), c_void_p(), c_void_p()
    done(library.cosmati_create(backend, None, byref(handle)))
    gemm = Gemm(size=ctypes.sizeof(Gemm), a=matrix(m, k), b=matrix(k, n), d=matrix(m, n), epilogue=b"relu(2*acc - 1)")
    done(library.cosmati_gemm_problem(byref(gemm), byref(problem)))
    done(library.cosmati_make_plan(handle, problem, None, byref(plan)))
    data = {b"a": (c_float * len(a))(*a), b"b": (c_float * len(b))(*b), b"d": (c_float * (m * n))()}
    arguments = (Argument * 3)(*(Argument(name, ctypes.addressof(values), 0) for name, values in data.items()))
    need = library.cosmati_plan_workspace(plan)
    memory = (ctypes.c_char * (need + 64))()
    aligned = (ctypes.addressof(memory) + 63) // 64 * 64
    done(library.cosmati_run(plan, arguments, 3, aligned, need, None))
    library.cosmati_plan_destroy(plan)
    library.cosmati_problem_destroy(problem)
    library.cosmati_destroy(handle)
    wanted = [max(0, 2 * sum(a[i * k + l] * b[l * n + j] for l in range(k)) - 1) for i in range(m) for j in range(n)]
    return max(abs(x - y) for x, y in zip(data[b"d"], wanted))


def products(library):
    for backend in (b"cpu", b"reference", b"emulator"):
        require(multiply(library, backend, 17, 9, 21, 1) == 0, f"{backend}: a wrong product")


def refusal(library, name):
    handle = c_void_p()
    status = library.cosmati_create(name, None, byref(handle))
    message = library.cosmati_last_error()
    require(status == BAD_REQUEST and name in message, f"create {name}: status {status}, message {message}")


def threads(library):
    """Threads with their own products and messages."""
    wrong = []

    def work(number):
        try:
            name = b"abacus%d" % number
            for round_ in range(4):
                refusal(library, name)
                backend = (b"cpu", b"emulator")[(number + round_) % 2]
                require(multiply(library, backend, 8 + number, 5, 12, number) == 0, f"thread {number}: a wrong product")
                require(name in library.cosmati_last_error(), f"thread {number}: the message is another thread's")
        except BaseException as problem:  # includes SystemExit: the main thread reports it
            wrong.append(problem)

    team = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for one in team:
        one.start()
    for one in team:
        one.join()
    require(not wrong, f"{wrong}")


def close(library):
    dlclose = ctypes.CDLL(None).dlclose
    dlclose.argtypes = [c_void_p]
    require(dlclose(library._handle) == 0, "dlclose failed")


def whole_life(path):
    library = opened(path)
    require(library.cosmati_last_error() == b"", "a message before any error")
    products(library)
    refusal(library, b"abacus")
    threads(library)
    # Must wait until no thread uses the library any more; libgomp's pool still runs and must survive this.
    close(library)
    library = opened(path)
    products(library)
    refusal(library, b"slide rule")
    close(library)


def without_spare_storage(path, spare):
    """libgomp is opened first: its own 136 bytes of such storage do not count."""
    ctypes.CDLL("libgomp.so.1")
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        while count < 4096:
            copy = shutil.copy(spare, os.path.join(folder, f"spare{count}.so"))
            try:
                ctypes.CDLL(copy)
            except OSError as full:
                require("static TLS" in str(full), f"{full}")
                break
            count += 1
        require(0 < count < 4096, f"{count} libraries did not use up the loader's spare storage")
    library = opened(path)
    products(library)
    refusal(library, b"abacus")
    threads(library)


def check_storage(path):
    """Our libraries must have no variable in static thread-local storage, which is allocated when a program starts."""
    dynamic = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    require("STATIC_TLS" not in dynamic, f"{path} has the flag STATIC_TLS: a thread_local variable of the model initial-exec")
    relocations = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True, check=True).stdout
    fixed = re.findall(r".*R_\w+_(?:TPOFF|TPREL|GOTTPOFF)\w*.*", relocations)
    require(not fixed, f"{path} has relocations of static thread-local storage:\n" + "\n".join(fixed[:5]))


def main():
    if sys.argv[1] == "--life":
        return whole_life(sys.argv[2])
    if sys.argv[1] == "--no-spare-storage":
        return without_spare_storage(sys.argv[2], sys.argv[3])
    spare, *libraries = sys.argv[1:]
    for library in libraries:
        check_storage(library)
    for mode in (["--life", libraries[0]], ["--no-spare-storage", libraries[0], spare]):
        result = subprocess.run([sys.executable, os.path.abspath(__file__), *mode], capture_output=True, text=True, timeout=200,
                                env=dict(os.environ, OMP_WAIT_POLICY="passive"))
        require(result.returncode == 0, f"{' '.join(mode)}: status {result.returncode}\n{result.stdout}\n{result.stderr}")
    print(f"opened, computed, refused, by {THREADS} threads, closed, opened again; without spare thread-local storage as well")


main()
