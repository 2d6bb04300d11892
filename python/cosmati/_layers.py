"""Normalization, losses, element-wise expressions and reductions."""
import importlib
import math
import re
from typing import Any, Optional, Tuple, TypeVar, Union

from . import _native
from ._interop import filled, finished

__all__ = ["batch_norm", "cross_entropy", "elementwise", "group_norm", "layer_norm", "local_response_norm", "log_softmax", "reduce", "rms_norm", "softmax"]
Array = TypeVar("Array")  # of numpy, PyTorch, CuPy, JAX, ...
FORWARD, BACKWARD = 0, 1  # cosmati_direction
INFERENCE, TRAINING = 0, 1  # cosmati_batch_norm_mode
BROADCASTERS = {"torch": "torch", "cupy": "cupy", "jaxlib": "jax.numpy", "jax": "jax.numpy"}  # the module with broadcast_to; else numpy
EPSILONS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
REDUCTIONS = ("sum", "mean", "max", "min", "sum-of-squares")  # cosmati_reduction


def is_jax(array):
    return type(array).__module__.startswith("jax")


def output(fields, name, out, like, shape=None, type_=None):
    """Adds the output to the fields: `out`, or a new array with like's shape."""
    shape = _native.describe(like, "x")[1] if shape is None else shape
    fields["=" + name] = result = out if out is not None else _native.empty(like, shape, type_)
    return result


def softmax(x: Array, dim: int = -1, *, out: Optional[Array] = None) -> Array:
    """Softmax: y = exp(x - max) / sum of exp(x - max), with maximum and sum along dimension `dim`.

    Args:
        x: of any shape with 1 to 6 dimensions.
        out: of x's shape.

    Returns:
        `out`, or a new array of x's type.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> softmax(numpy.zeros((2, 4), numpy.float32))[0]
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    return along(x, dim, 0, out)


def log_softmax(x: Array, dim: int = -1, *, out: Optional[Array] = None) -> Array:
    """Logarithm of softmax: y = x - max - log(sum of exp(x - max)), along dimension `dim`; arguments as for softmax.

    >>> import numpy
    >>> log_softmax(numpy.zeros((2, 4), numpy.float32))[0].round(4)
    array([-1.3863, -1.3863, -1.3863, -1.3863], dtype=float32)
    """
    return along(x, dim, 1, out)


def along(x, dim, logarithm, out):
    rank = len(_native.describe(x, "x")[1])
    if not -rank <= dim < rank:
        raise ValueError(f"dim = {dim}; valid values: {-rank} to {rank - 1}")
    fields = {"x": x, "direction": FORWARD, "logarithm": logarithm, "axis": dim % rank}
    y = output(fields, "y", out, x)
    _native.run("softmax", fields, None, {}, None)
    return y if out is not None else finished(x, y)


def labels_of(target, classes, on_host):
    """Returns the target in int32. On a GPU, which is not waited for, int64 labels outside the classes become int32 labels outside them."""
    if str(getattr(target, "dtype", "")).rpartition(".")[2] != "int64":
        return target
    if on_host:
        wrong = target[(target < 0) | (target >= classes)]
        if len(wrong):
            raise ValueError(f"cross_entropy: target has {int(wrong[0])}; valid values: 0 to {classes - 1}")
    else:
        target = target.clip(-1, classes)
    return target.int() if hasattr(target, "int") else target.astype("int32")


def cross_entropy(x: Array, target: Array, *, reduction: str = "mean", out: Optional[Array] = None) -> Array:
    """Cross-entropy: the mean, or the sum, over n of -log softmax(x[n])[target[n]].

    Args:
        x: (N, classes).
        target: (N), int32, or int64, which is converted; each in [0, classes); on the host, others raise ValueError.
        reduction: "mean" or "sum".
        out: zero-dimensional, or (1).

    Returns:
        `out`, or a new zero-dimensional array of x's type.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> round(float(cross_entropy(numpy.zeros((3, 4), numpy.float32), numpy.array([0, 1, 2]))), 4)
    1.3863
    """
    if reduction == "none":
        raise ValueError("reduction = 'none' is not supported: the kernels add up the rows; the losses of the rows are elements of -log_softmax(x)")
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction = {reduction!r}; valid values: 'mean', 'sum'")
    _, shape, _, device, _ = _native.describe(x, "x")
    if len(shape) != 2:
        raise ValueError(f"x has {len(shape)} dimensions; expected (N, classes)")
    fields = {"x": x, "direction": FORWARD, "labels": labels_of(target, shape[1], device < 0)}
    loss = output(fields, "loss", None if out is None else out.reshape((1,)), x, (1,))
    _native.run("cross_entropy", fields, None, {}, None)
    if out is None:
        loss = finished(x, loss)
        return (loss * shape[0] if reduction == "sum" else loss).reshape(())
    if reduction == "sum":
        loss *= shape[0]
    return out


def batch_norm(x: Array, running_mean: Optional[Array], running_var: Optional[Array], weight: Optional[Array] = None,
               bias: Optional[Array] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5, *,
               out: Optional[Array] = None) -> Array:
    """Batch normalization: y = (x - mean[c]) / sqrt(variance[c] + eps) * weight[c] + bias[c].

    Args:
        x: (N, C, ...), of 2 to 5 dimensions.
        running_mean, running_var: (C). Without `training`, the mean and the variance. With `training`, those of the batch are
            used, over all dimensions but c, and these arrays, if given, are updated in place to (1 - momentum) * running +
            momentum * batch, with the batch variance divided by its number of elements minus 1. JAX arrays cannot be updated;
            the updated ones are returned.
        weight, bias: (C); None: ones, zeros. All arrays (C) must have the same type.
        out: of x's shape.

    Returns:
        `out`, or a new array of x's type. With `training`, and running statistics that are JAX arrays: (y, running_mean,
        running_var).

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> x, mean, variance = (numpy.full(shape, value, numpy.float32) for shape, value in (((1, 1, 2), 5), (1, 1), (1, 4)))
    >>> batch_norm(x, mean, variance, eps=0.0)[0, 0]
    array([2., 2.], dtype=float32)
    """
    shape = _native.describe(x, "x")[1]
    if len(shape) < 2:
        raise ValueError(f"x has {len(shape)} dimensions; expected (N, C, ...)")
    if not training and (running_mean is None or running_var is None):
        raise ValueError("without training, running_mean and running_var are required")
    like = next((array for array in (running_mean, weight, bias) if array is not None), None)
    type_ = _native.describe(like, "weight")[0] if like is not None else ("float64" if _native.describe(x, "x")[0] == "float64" else "float32")
    fields = {"x": x, "mode": TRAINING if training else INFERENCE, "epsilon": float(eps)}
    fields["statistics:scale"] = weight if weight is not None else filled(x, shape[1:2], type_, 1)
    fields["statistics:bias"] = bias if bias is not None else filled(x, shape[1:2], type_, 0)
    y = output(fields, "y", out, x)
    if training:
        mean, variance = (_native.empty(x, (shape[1],), type_) for _ in range(2))
        fields["=statistics:saved_mean"], fields["=statistics:saved_variance"] = mean, variance
    else:
        fields["statistics:mean"], fields["statistics:variance"] = running_mean, running_var
    _native.run("batch_norm", fields, None, {}, None)
    y = y if out is not None else finished(x, y)
    if not training or (running_mean is None and running_var is None):
        return y
    count = math.prod((shape[0], *shape[2:]))
    mean, variance = finished(x, mean), finished(x, variance) * (count / max(count - 1, 1))
    updated = [running if running is None else running * (1 - momentum) + batch * momentum
               for running, batch in ((running_mean, mean), (running_var, variance))]
    if any(is_jax(running) for running in (running_mean, running_var)):
        return y, *updated
    for running, new in zip((running_mean, running_var), updated):
        if running is not None:
            running[...] = new
    return y


def layer_norm(x: Array, normalized_shape: Union[int, Tuple[int, ...]], weight: Optional[Array] = None,
               bias: Optional[Array] = None, eps: float = 1e-5, *, out: Optional[Array] = None) -> Array:
    """Layer normalization: y = (x - mean) / sqrt(variance + eps) * weight + bias, mean and variance over the last dimensions.

    Args:
        x: of any shape that ends in `normalized_shape`.
        normalized_shape: an integer, or the last dimensions of x, which are normalized together.
        weight, bias: of `normalized_shape`; None: ones, zeros.
        out: of x's shape.

    Returns:
        `out`, or a new array of x's type.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> layer_norm(numpy.array([[1, 3], [5, 5]], numpy.float32), 2, eps=0.25).round(4)
    array([[-0.8944,  0.8944],
           [ 0.    ,  0.    ]], dtype=float32)
    """
    return normalize_rows("layer_norm", x, normalized_shape, weight, bias, eps, out)[0]


def rms_norm(x: Array, normalized_shape: Union[int, Tuple[int, ...]], weight: Optional[Array] = None,
             eps: Optional[float] = None, *, out: Optional[Array] = None) -> Array:
    """RMS normalization: y = x / sqrt(mean of x^2 + eps) * weight, the mean over the last dimensions.

    Args:
        x: of any shape that ends in `normalized_shape`.
        normalized_shape: an integer, or the last dimensions of x, which are normalized together.
        weight: of `normalized_shape`; None: ones.
        eps: None: the distance from 1 to the next number of x's type.
        out: of x's shape.

    Returns:
        `out`, or a new array of x's type.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> rms_norm(numpy.array([1, 7], numpy.float32), 2)
    array([0.2, 1.4], dtype=float32)
    """
    return normalize_rows("rms_norm", x, normalized_shape, weight, None, eps, out)[0]


def group_norm(x: Array, num_groups: int, weight: Optional[Array] = None, bias: Optional[Array] = None, eps: float = 1e-5, *,
               out: Optional[Array] = None) -> Array:
    """Group normalization: y = (x - mean) / sqrt(variance + eps) * weight[c] + bias[c], mean and variance over the channels of a group.

    Args:
        x: (N, C, ...), of 2 to 5 dimensions.
        num_groups: the number of groups of adjacent channels; divides C. Mean and variance are those of one image, over C / num_groups
            channels and all positions.
        weight, bias: (C); None: ones, zeros.
        out: of x's shape.

    Returns:
        `out`, or a new array of x's type.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> group_norm(numpy.array([[1, 3, 5, 5]], numpy.float32), 2, eps=0.25).round(4)
    array([[-0.8944,  0.8944,  0.    ,  0.    ]], dtype=float32)
    """
    return normalize_rows("group_norm", x, num_groups, weight, bias, eps, out)[0]


def fields_of_rows(operation, x, normalized_shape, eps):
    """Returns the fields common to both directions of a row normalization, the shape of the parameters, and the shape and type of the
    statistics. For group_norm, `normalized_shape` is the number of groups."""
    type_, shape = _native.describe(x, "x")[:2]
    if operation == "group_norm":
        groups = normalized_shape
        if len(shape) < 2 or groups < 1 or shape[1] % groups:
            raise ValueError(f"num_groups = {groups}; expected a divisor of the channels of x (N, C, ...), which is of shape {tuple(shape)}")
        return {"x": x, "groups": groups, "epsilon": float(eps)}, (shape[1],), (shape[0], groups), "float64" if type_ == "float64" else "float32"
    normalized = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    axis = len(shape) - len(normalized)
    if not normalized or axis < 0 or tuple(shape[axis:]) != normalized:
        raise ValueError(f"normalized_shape = {normalized_shape}; expected the last dimensions of x, which is of shape {tuple(shape)}")
    epsilon = EPSILONS.get(type_, EPSILONS["float32"]) if eps is None else float(eps)
    statistics = (*shape[:axis], *[1] * len(normalized))
    return {"x": x, "axis": axis, "epsilon": epsilon}, normalized, statistics, "float64" if type_ == "float64" else "float32"


def normalize_rows(operation, x, normalized_shape, weight, bias, eps, out=None, saves=False):
    """Returns y and, with `saves`, the mean (None for rms_norm) and the inverse standard deviation or root mean square of each row."""
    fields, _, shape, type_ = fields_of_rows(operation, x, normalized_shape, eps)
    fields |= {"direction": FORWARD, **{name: array for name, array in (("weight", weight), ("bias", bias)) if array is not None}}
    y = output(fields, "y", out, x)
    mean = inverse = None
    if saves:
        if operation != "rms_norm":
            mean = output(fields, "statistics:saved_mean", None, x, shape, type_)
        inverse = output(fields, "statistics:saved_inverse", None, x, shape, type_)
    _native.run(operation, fields, None, {}, None)
    return tuple(one if one is out or one is None else finished(x, one) for one in (y, mean, inverse))


def gradients_of_rows(operation, dy, x, normalized_shape, weight, mean, inverse, has_bias):
    """Returns dx, dweight (None without weight) and dbias (None without `has_bias`) from the tensors saved by normalize_rows."""
    fields, parameters, _, _ = fields_of_rows(operation, x, normalized_shape, 0.0)
    fields |= {"direction": BACKWARD, "y:dy": dy, "statistics:inverse": inverse}
    if mean is not None:
        fields["statistics:mean"] = mean
    dx = output(fields, "dx", None, x)
    dweight = dbias = None
    if weight is not None:
        fields["weight"] = weight
        dweight = output(fields, "dweight", None, weight)
    if has_bias:
        dbias = output(fields, "dbias", None, x, parameters)
    _native.run(operation, fields, None, {}, None)
    return tuple(one if one is None else finished(x, one) for one in (dx, dweight, dbias))


def local_response_norm(x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, *,
                        out: Optional[Array] = None) -> Array:
    """Local response normalization: y = x / (k + alpha / size * sum of x[n, i]^2)^beta.

    The sum is over the channels i in [c - (size - 1) // 2, c + size // 2].

    Args:
        x: (N, C, ...).
        size: the number of channels in a window.
        out: of x's shape.

    Returns:
        `out`, or a new array of x's type.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> local_response_norm(numpy.ones((1, 3, 1, 1), numpy.float32), 3, alpha=3.0, beta=1.0).ravel()
    array([0.33333334, 0.25      , 0.33333334], dtype=float32)
    """
    fields = {"x": x, "direction": FORWARD, "window": size, "alpha": float(alpha), "beta": float(beta), "k": float(k)}
    y = output(fields, "y", out, x)
    _native.run("lrn", fields, None, {}, None)
    return y if out is not None else finished(x, y)


def reduce(x: Array, operation: str = "sum", axis: Union[None, int, Tuple[int, ...]] = None, keepdims: bool = False, *,
           out: Optional[Array] = None) -> Array:
    """Reduction over one axis, several (a tuple) or all (None).

    Args:
        x: of 1 to 6 dimensions.
        operation: "sum", "mean", "max", "min" (where NaN wins) or "sum-of-squares".
        keepdims: keeps the reduced axes with extent 1.
        out: of the shape with keepdims.

    Returns:
        `out`, or a new array of x's type; sums are in float32, in float64 for float64, in int32 for integers.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> x = numpy.array([[1, 5], [3, 2]], numpy.float32)
    >>> reduce(x, "max", axis=0), reduce(x, "mean", axis=1, keepdims=True)
    (array([3., 5.], dtype=float32), array([[3. ],
           [2.5]], dtype=float32))
    """
    shape = _native.describe(x, "x")[1]
    rank = len(shape)
    axes = range(rank) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    if operation not in REDUCTIONS:
        raise ValueError(f"operation = {operation!r}; valid values: {', '.join(REDUCTIONS)}")
    if any(not -rank <= one < rank for one in axes):
        raise ValueError(f"axis = {axis}; valid values: {-rank} to {rank - 1}")
    axes = {one % rank for one in axes}
    kept = tuple(1 if d in axes else extent for d, extent in enumerate(shape))
    fields = {"x": x, "operation": REDUCTIONS.index(operation)}
    y = output(fields, "y", out, x, kept)
    _native.run("reduce", fields, None, {}, None)
    if out is not None:
        return y
    y = finished(x, y)
    return y if keepdims else y.reshape(tuple(extent for d, extent in enumerate(kept) if d not in axes))


def broadcast(shapes):
    """Returns the broadcast shape of arrays, as numpy defines it."""
    result = []
    for d in range(1, max(map(len, shapes), default=0) + 1):
        extents = {shape[-d] for shape in shapes if len(shape) >= d} - {1}
        if len(extents) > 1:
            raise ValueError(f"shapes {', '.join(map(str, shapes))} cannot be broadcast together")
        result.append(extents.pop() if extents else 1)
    return tuple(reversed(result))


def is_packed(shape, strides):
    """Returns whether an array is contiguous and row-major."""
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def elementwise(expression: str, *, out: Optional[Any] = None, **arrays: Any) -> Any:
    """Evaluates an expression of arrays, element by element, in one pass over memory:
    elementwise("relu(x*scale + y)", x=x, y=y, scale=2).

    Computed in float32, or in float64 if the first array is float64, as the epilogue of a product of zeros.

    Args:
        expression: in the epilogue language (see gemm), with names without brackets; acc, c, m, n and batch are reserved.
        out: with the broadcast shape of all arrays.
        arrays: numbers, and arrays, which are broadcast as by numpy. Arrays of more than three dimensions that have gaps are copied.

    Returns:
        `out`, or a new array of the type of the first array.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> x = numpy.array([[-1, 2], [3, -4]], numpy.float32)
    >>> elementwise("relu(x) * s + y", x=x, y=x[0], s=10)
    array([[-1., 22.],
           [29.,  2.]], dtype=float32)
    """
    numbers = {name: value for name, value in arrays.items() if isinstance(value, (int, float))}
    arrays = {name: value for name, value in arrays.items() if name not in numbers}
    if not arrays:
        raise TypeError("elementwise needs an array")
    reserved = {"acc", "c", "m", "n", "batch"} & {*arrays, *numbers}
    if reserved:
        raise ValueError(f"elementwise: {reserved.pop()} is reserved in expressions; choose another name")
    told = {name: _native.describe(array, name) for name, array in arrays.items()}
    like = next(iter(arrays.values()))
    type_ = next(iter(told.values()))[0]
    shape = broadcast([one[1] for one in told.values()])
    count = math.prod(shape)
    if all(one[1] == shape and is_packed(one[1], one[2]) for one in told.values()) and count > 0:
        columns = next(n for n in (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1) if count % n == 0)
        flat = (1, count // columns, columns)
    else:
        flat = (1,) * (3 - len(shape)) + shape if len(shape) <= 3 else (count // max(shape[-1] * shape[-2], 1), *shape[-2:])
    library = importlib.import_module(BROADCASTERS.get(next(iter(told.values()))[4], "numpy"))
    operands = dict(numbers)
    for name, array in arrays.items():
        if told[name][1] != shape:
            array = library.broadcast_to(array, shape)
        operands[name] = array.reshape(flat)
        expression = re.sub(rf"\b{name}\b(?!\s*[\[(])", f"{name}[batch, m, n]", expression)
    result = out if out is not None else _native.empty(like, shape, None)
    found = _native.describe(result, "out")
    if found[1] != shape:
        raise ValueError(f"elementwise: out is of shape {found[1]}; expected {shape}")
    # A contiguous result is returned as a view; otherwise it is copied.
    packed = is_packed(shape, found[2])
    target = result.reshape(flat) if packed else _native.empty(like, flat, found[0])
    factors = [filled(like, extents, "float64" if type_ == "float64" else "float32", 0) for extents in ((flat[0], flat[1], 1), (1, flat[2]))]
    _native.gemm(*factors, None, 1.0, 0.0, expression, target, None, None, operands, None)
    if not packed:
        result[...] = target.reshape(shape)
    return result if out is not None else finished(like, result)
