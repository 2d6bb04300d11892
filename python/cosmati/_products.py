"""Matrix products."""
from . import _native
from ._interop import finished
from ._plan import Plan, mode_of


def gemm(a, b, c=None, *, alpha=1.0, beta=0.0, epilogue=None, out=None, accumulator=None, compute=None, **operands):
    """Matrix product with an epilogue: out[i, m, n] = epilogue(sum over k of a[i, m, k] * b[i, k, n]).

    Without `epilogue`: alpha * a @ b + beta * c, where c is read only if beta is not 0. An epilogue is a line of text that is
    evaluated in the kernel before the result is stored (docs/python.md)::

        acc                   the sum
        c                     the array c
        alpha, beta           the numbers
        bias[n]               an array of `operands` with one dimension for each letter in brackets: batch, m, n
        scale                 a number of `operands`
        store(before, acc);   an extra output, an array of `operands` with the shape of the result

    Args:
        a: (m, k), or (batch, m, k).
        b: (k, n), or (batch, k, n). A single matrix, or a batch of one, is used for every product of the other batch.
        c: (m, n), or (batch, m, n).
        out: (m, n), or (batch, m, n) if a or b has a batch; of any type that the library supports with those of a and b.
        accumulator: "f16" allows sums in float16 for float16 inputs; None or "f32": sums are in float32, in float64 if an
            input is float64, in int32 for integers.
        compute: "tf32" allows products of float32 to be rounded to TF32, on GPUs; "bf16x3", "bf16x6" and "bf16x9" allow
            each to be computed by three, six or nine products of bfloat16 on tensor cores, "tf32x3" by three of
            TF32; "fast_accumulation" allows a GPU to sum products of 8-bit floats with about 14 bits; None or "f32" allows
            none of these.

    Returns:
        `out`, or a new array: of the type of a, but int32 for 8-bit integers and float32 for 8-bit floats.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> a = numpy.array([[1, 2], [3, 4]], numpy.float32)
    >>> gemm(a, a.T, epilogue="relu(acc + bias[n])", bias=numpy.array([-6, 0], numpy.float32))
    array([[ 0., 11.],
           [ 5., 25.]], dtype=float32)
    >>> gemm(a, a, a, alpha=2, beta=-1)
    array([[13., 18.],
           [27., 40.]], dtype=float32)
    """
    result = _native.gemm(a, b, c, alpha, beta, epilogue, out, accumulator, compute, operands, None)
    return result if out is not None or type(result) is type(a) else finished(a, result)


def grouped_gemm(a, b, c=None, *, alpha=1.0, beta=0.0, epilogue=None, out=None, accumulator=None, compute=None, **operands):
    """Matrix products of different sizes as one problem, each computed like gemm; on a GPU in one launch if a kernel supports
    it.

    out[g][m, n] = epilogue(sum over k of a[g][m, k] * b[g][k, n]), for g = 0 ... groups - 1.

    Args:
        a, b, c, out: sequences of `groups` matrices (m, k), (k, n), (m, n), (m, n), or arrays (groups, ..., ...); m, n and k
            may differ from product to product, types may not. Views are not copied, so products may be parts of one array.
        operands: for the epilogue: numbers and arrays shared by all products, or a list or tuple of arrays, one for each product.
        (the others): as in gemm, for all products.

    No product may write memory that another one reads or writes.

    Returns:
        A list of `groups` arrays, those of `out` or new ones.

    Host or device, asynchrony and errors: see the package. ValueError names the product.

    >>> import numpy
    >>> tokens, weights = numpy.ones((5, 2), numpy.float32), numpy.arange(8, dtype=numpy.float32).reshape(2, 2, 2)
    >>> grouped_gemm(numpy.split(tokens, [2]), weights)  # two rows by weights[0], three by weights[1]
    [array([[2., 4.],
           [2., 4.]], dtype=float32), array([[10., 12.],
           [10., 12.],
           [10., 12.]], dtype=float32)]
    """
    columns = {"a": list(a), "b": list(b), "c": None if c is None else list(c), "out": None if out is None else list(out),
               **{name: value for name, value in operands.items() if isinstance(value, (list, tuple))}}
    groups = len(columns["a"])
    for name, column in columns.items():
        if column is not None and len(column) != groups:
            raise ValueError(f"grouped_gemm: {name} has {len(column)} arrays, a {groups}; expected one for each product")
    of_each = ({**operands, **{name: columns[name][g] for name in operands if name in columns}} for g in range(groups))
    results = _native.grouped_gemm([
        (columns["a"][g], columns["b"][g], columns["c"] and columns["c"][g], alpha, beta, epilogue, columns["out"] and columns["out"][g],
         accumulator, compute, own) for g, own in enumerate(of_each)])
    return results if out is not None else [finished(like, result) for like, result in zip(columns["a"], results)]


def plan_gemm(a, b, c=None, *, alpha=1.0, beta=0.0, epilogue=None, out=None, accumulator=None, compute=None, kernel=None,
              max_workspace=None, max_error=None, batch_invariant=False, policy=None, seconds=None, **operands):
    """Returns the plan of gemm for these arguments, whose elements are not read.

    Args:
        kernel: only this kernel; explain() of a plan lists the names.
        max_workspace: rejects kernels that need more bytes.
        max_error: rejects kernels with a larger expected relative rounding error.
        batch_invariant: only kernels for which the bits of a row do not depend on the number of other rows.
        policy: for kernels with policies: a name, field=value,..., or both.
        seconds: measures each kernel for this time and selects the fastest; None: selects by prediction.
        (the others): as in gemm.

    Returns:
        A Plan. ``plan(a, b, c, out=..., **operands)`` computes gemm with the alpha, beta, epilogue, accumulator and compute
        given here.

    Errors: ValueError if no kernel supports the problem, with the reason for each; others as in gemm.

    >>> import numpy
    >>> a = numpy.ones((3, 3), numpy.float32)
    >>> plan = plan_gemm(a, a, kernel="reference")
    >>> plan.kernel, plan.workspace_bytes
    ('reference', 0)
    >>> plan(a, a)[0]
    array([3., 3., 3.], dtype=float32)
    """
    def call(capsule, a, b, c=None, *, out=None, **operands):
        result = _native.gemm(a, b, c, alpha, beta, epilogue, out, accumulator, compute, operands, capsule)
        return result if out is not None else finished(a, result)

    mode = mode_of(kernel, max_workspace, max_error, batch_invariant, policy, seconds)
    return Plan(_native.gemm(a, b, c, alpha, beta, epilogue, out, accumulator, compute, operands, mode), call)
