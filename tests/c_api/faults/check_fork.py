"""check_fork.py LIBRARY: computes in Python, forks like multiprocessing, and computes in the children."""
import array
import ctypes
import multiprocessing
import os
import sys

N = 192


class Tensor(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("rank", ctypes.c_int32), ("extent", ctypes.c_int64 * 6),
                ("stride", ctypes.c_int64 * 6), ("alignment", ctypes.c_int64)]


class Gemm(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("a", Tensor), ("b", Tensor), ("c", Tensor), ("d", Tensor),
                ("epilogue", ctypes.c_char_p), ("epilogue_tensors", ctypes.c_void_p), ("epilogue_tensor_count", ctypes.c_size_t),
                ("accumulate_in_f16", ctypes.c_int32), ("by_pointers", ctypes.c_int32), ("bf16_products", ctypes.c_int32), ("tf32_products", ctypes.c_int32),
                ("fast_accumulation", ctypes.c_int32)]


class Argument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("value", ctypes.c_double)]


class Product:
    """Computes d = a * b of N x N matrices in f32 on four threads."""

    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.library.cosmati_last_error.restype = ctypes.c_char_p
        self.library.cosmati_plan_workspace.restype = ctypes.c_size_t
        handle, problem, self.plan = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("create", b"cpu", b"threads=4", ctypes.byref(handle))
        gemm = Gemm(size=ctypes.sizeof(Gemm))
        for tensor in (gemm.a, gemm.b, gemm.d):
            tensor.type, tensor.rank = F32, 2
            tensor.extent[0:2], tensor.stride[0:2] = (N, N), (N, 1)
        self.call("gemm_problem", ctypes.byref(gemm), ctypes.byref(problem))
        self.call("make_plan", handle, problem, None, ctypes.byref(self.plan))
        self.bytes = self.library.cosmati_plan_workspace(self.plan)
        self.a = array.array("f", (float(i % 7 - 3) for i in range(N * N)))
        self.b = array.array("f", (float(i % 5 - 2) for i in range(N * N)))

    def call(self, name, *arguments):
        if getattr(self.library, "cosmati_" + name)(*arguments) != 0:
            raise RuntimeError(f"cosmati_{name}: {self.library.cosmati_last_error().decode()}")

    def compute(self):
        d = array.array("f", bytes(4 * N * N))
        workspace = ctypes.create_string_buffer(self.bytes + 256)
        aligned = (ctypes.addressof(workspace) + 255) // 256 * 256
        tensors = (Argument * 3)(*((name, data.buffer_info()[0], 0.0) for name, data in ((b"a", self.a), (b"b", self.b), (b"d", d))))
        self.call("run", self.plan, tensors, ctypes.c_size_t(3), ctypes.c_void_p(aligned), ctypes.c_size_t(self.bytes), None)
        return d.tobytes()


F32 = 1  # COSMATI_F32, checked by the first result


def compute_again(_):
    return product.compute()


def main():
    global product
    product = Product(sys.argv[1])
    wanted = product.compute()
    row = [sum(product.a[k] * product.b[k * N + j] for k in range(N)) for j in range(N)]
    if list(array.array("f", wanted)[:N]) != row:
        sys.exit("the parent's product is wrong")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        results = pool.map_async(compute_again, range(12)).get(timeout=60)
    if any(result != wanted for result in results):
        sys.exit("a child's product differs from its parent's")
    child = os.fork()
    if child == 0:
        os._exit(0 if product.compute() == wanted else 1)
    if os.waitpid(child, 0)[1] != 0 or product.compute() != wanted:
        sys.exit("a product after os.fork() is wrong")


if __name__ == "__main__":
    main()
