"""Convolutions and pooling of images (N, C, H, W) and volumes (N, C, D, H, W) with any strides."""
import functools
import operator

from . import _native
from ._interop import finished
from ._plan import Plan, mode_of

FORWARD, DATA, FILTER, TRANSPOSED = 0, 1, 2, 4  # cosmati_convolution_direction
MAX, AVERAGE, AVERAGE_WITH_PADDING = 0, 1, 2  # cosmati_pooling_mode


def numbers(value, name, count):
    """Returns a tuple of `count` numbers from one number, or from one for each dimension."""
    values = (value,) * count if hasattr(value, "__index__") else tuple(value)
    if len(values) != count:
        each = "two: vertical and horizontal" if count == 2 else "three: along depth, height and width"
        raise ValueError(f"{name} = {value}; expected a number, or {each}")
    return tuple(operator.index(one) for one in values)


def image_shape(array, name, dimensions=2):
    shape = _native.describe(array, name)[1]
    if len(shape) != dimensions + 2:
        meaning = "(N, C, H, W) of images, (K, C, R, S) of filters" if dimensions == 2 else \
            "(N, C, D, H, W) of volumes, (K, C, T, R, S) of filters"
        raise ValueError(f"{name} has {len(shape)} dimensions; expected {dimensions + 2}: {meaning}")
    return shape


def extents(sizes, window, stride, padding, dilation, ceil_mode=False):
    """(P, Q) of (H, W), or (O, P, Q) of (D, H, W)."""
    result = []
    for i in range(len(sizes)):
        if stride[i] < 1:
            raise ValueError(f"stride = {stride}; expected 1 or more")
        reach = sizes[i] + 2 * padding[i] - dilation[i] * (window[i] - 1) - 1
        count = (reach + (stride[i] - 1 if ceil_mode else 0)) // stride[i] + 1 if reach >= 0 else 0
        if ceil_mode and count > 0 and (count - 1) * stride[i] >= sizes[i] + padding[i]:
            count -= 1  # no window begins in the right padding
        result.append(count)
    return tuple(result)


class Geometry:
    """Windows over `dimensions` dimensions of an image or volume; `fields` are those of the problem."""

    def __init__(self, dimensions, stride, padding, dilation):
        self.dimensions = dimensions
        self.stride = numbers(stride, "stride", dimensions)
        self.padding = numbers(padding, "padding", dimensions)
        self.dilation = numbers(dilation, "dilation", dimensions)
        self.fields = {"stride": self.stride[-2:], "pad_begin": self.padding[-2:], "pad_end": self.padding[-2:],
                       "dilation": self.dilation[-2:]}
        if dimensions == 3:
            self.fields.update(depth_stride=self.stride[0], depth_pad_begin=self.padding[0], depth_pad_end=self.padding[0],
                               depth_dilation=self.dilation[0])

    def outputs(self, sizes, window, ceil_mode=False):
        return extents(sizes, window, self.stride, self.padding, self.dilation, ceil_mode)


@functools.lru_cache(1024)
def kept_geometry(dimensions, stride, padding, dilation):
    return Geometry(dimensions, stride, padding, dilation)


def geometry_of(dimensions, *geometry):
    return kept_geometry(dimensions, *(tuple(one) if isinstance(one, list) else one for one in geometry))


def with_bias(bias, epilogue, operands):
    """Returns the epilogue and its operands, with the bias as an operand."""
    if bias is None:
        return epilogue, operands
    return epilogue or "acc + bias[k]", {**operands, "bias": bias}


def run(fields, y, shape, like, epilogue, operands, mode, argument="y"):
    """Runs with an output of this shape, or makes a plan."""
    result = y if y is not None else _native.empty(like, shape, None)
    fields[argument] = result
    told = _native.run("convolution", fields, epilogue, operands, mode)
    if isinstance(mode, tuple):
        return told
    return result if y is not None else finished(like, result)


def forward(mode, x, w, bias, stride, padding, dilation, groups, epilogue, out, operands, dimensions=2):
    geometry = geometry_of(dimensions, stride, padding, dilation)
    fields = {"direction": FORWARD, "x": x, "w": w, "groups": groups, **geometry.fields}
    n, _, *sizes = image_shape(x, "x", dimensions)
    k, _, *window = image_shape(w, "w", dimensions)
    epilogue, operands = with_bias(bias, epilogue, operands)
    return run(fields, out, (n, k, *geometry.outputs(sizes, window)), x, epilogue, operands, mode, "=y")


def transposed(x, w, bias, stride, padding, output_padding, groups, dilation, epilogue, out, operands, dimensions):
    geometry = geometry_of(dimensions, stride, padding, dilation)
    fields = {"direction": TRANSPOSED, "x": x, "w": w, "groups": groups, **geometry.fields}
    n, _, *sizes = image_shape(x, "x", dimensions)
    _, k, *window = image_shape(w, "w", dimensions)
    more = numbers(output_padding, "output_padding", dimensions)
    for i in range(dimensions):
        if not 0 <= more[i] < max(geometry.stride[i], geometry.dilation[i]):
            raise ValueError(f"output_padding = {output_padding}; expected 0 or more, and less than the stride or the dilation")
    shape = (n, k * groups, *((sizes[i] - 1) * geometry.stride[i] - 2 * geometry.padding[i]
                              + geometry.dilation[i] * (window[i] - 1) + more[i] + 1 for i in range(dimensions)))
    epilogue, operands = with_bias(bias, epilogue, operands)
    return run(fields, out, shape, x, epilogue, operands, None, "=y")


def input_grad(input_size, w, dy, stride, padding, dilation, groups, epilogue, out, operands, dimensions):
    fields = {"direction": DATA, "w": w, "y:dy": dy, "groups": groups, **geometry_of(dimensions, stride, padding, dilation).fields}
    return run(fields, out, tuple(input_size), dy, epilogue, operands, None, "=x:dx")


def weight_grad(x, weight_size, dy, stride, padding, dilation, groups, out, dimensions):
    fields = {"direction": FILTER, "x": x, "y:dy": dy, "groups": groups, **geometry_of(dimensions, stride, padding, dilation).fields}
    return run(fields, out, tuple(weight_size), x, None, {}, None, "=w:dw")


def conv2d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, *, epilogue=None, out=None, **operands):
    """Convolution: y[n, k, p, q] = epilogue(sum over c, r, s of x[n, c, h, w] * w[k, c, r, s] + bias[k]).

    Here h = p*stride - padding + r*dilation (w likewise; x is 0 outside the image), and c runs over the channels of k's group.
    Without `epilogue` the bias is added; with an epilogue it is the array that the text names bias[k], and is not added
    automatically.
    The indices in an epilogue are n, k, p, q: "relu(acc + bias[k]) + residual[n, k, p, q]" (see gemm).

    Args:
        x: (N, C, H, W), of any strides: channels first, channels last, slices.
        w: (K, C / groups, R, S).
        bias: (K).
        stride, padding, dilation: a number, or two: vertical and horizontal. Padding is on both sides.
        out: (N, K, P, Q), P = floor((H + 2*padding - dilation*(R - 1) - 1) / stride) + 1.

    Returns:
        `out`, or a new array of x's type, channels first.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> x = numpy.arange(9, dtype=numpy.float32).reshape(1, 1, 3, 3)
    >>> conv2d(x, numpy.ones((1, 1, 2, 2), numpy.float32), epilogue="min(acc, 20)")[0, 0]
    array([[ 8., 12.],
           [20., 20.]], dtype=float32)
    """
    return forward(None, x, w, bias, stride, padding, dilation, groups, epilogue, out, operands)


def plan_conv2d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, *, epilogue=None, out=None, kernel=None,
                max_workspace=None, max_error=None, batch_invariant=False, policy=None, seconds=None, **operands):
    """Returns the plan of conv2d for these arguments, whose elements are not read. Restrictions as in plan_gemm.

    Returns:
        A Plan. ``plan(x, w, bias, out=..., **operands)`` computes conv2d with the other arguments given here.

    >>> import numpy
    >>> x, w = numpy.ones((1, 2, 5, 5), numpy.float32), numpy.ones((3, 2, 3, 3), numpy.float32)
    >>> plan_conv2d(x, w, padding=1)(x, w).shape
    (1, 3, 5, 5)
    """
    mode = mode_of(kernel, max_workspace, max_error, batch_invariant, policy, seconds)

    def call(capsule, x, w, bias=None, *, out=None, **operands):
        return forward(capsule, x, w, bias, stride, padding, dilation, groups, epilogue, out, operands)

    return Plan(forward(mode, x, w, bias, stride, padding, dilation, groups, epilogue, out, operands), call)


def conv_transpose2d(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, *, epilogue=None, out=None,
                     **operands):
    """Transposed convolution: y[n, k, h, w] = epilogue(sum over c, r, s of x[n, c, p, q] * w[c, k, r, s] + bias[k]).

    The sum is over those p and q with h = p*stride - padding + r*dilation, w likewise: conv2d's gradient for its input.

    Args:
        x: (N, C, P, Q).
        w: (C, K / groups, R, S).
        bias: (K), as in conv2d.
        output_padding: rows and columns added at the end, which no p reaches; less than the stride or the dilation.
        out: (N, K, H, W), H = (P - 1)*stride - 2*padding + dilation*(R - 1) + output_padding + 1.

    Returns:
        `out`, or a new array of x's type, channels first.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> x = numpy.array([[[[1, 2]]]], numpy.float32)
    >>> conv_transpose2d(x, numpy.ones((1, 1, 1, 2), numpy.float32), stride=2)[0, 0]
    array([[1., 1., 2., 2.]], dtype=float32)
    """
    return transposed(x, w, bias, stride, padding, output_padding, groups, dilation, epilogue, out, operands, 2)


def conv2d_input_grad(input_size, w, dy, stride=1, padding=0, dilation=1, groups=1, *, epilogue=None, out=None, **operands):
    """conv2d's gradient for its input: dx[n, c, h, w] = epilogue(sum over k, r, s of dy[n, k, p, q] * w[k, c, r, s]).

    The sum is over those p and q with h = p*stride - padding + r*dilation, w likewise. Arguments in the order of
    torch.nn.grad.conv2d_input. The indices n, k, p, q in an epilogue are those of its output, here n, c, h, w.

    Args:
        input_size: (N, C, H, W), the shape of the result.
        w: (K, C / groups, R, S).
        dy: (N, K, P, Q).

    Returns:
        `out`, or a new array of dy's type.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> ones = numpy.ones((1, 1, 2, 2), numpy.float32)
    >>> conv2d_input_grad((1, 1, 3, 3), ones, ones)[0, 0]
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]], dtype=float32)
    """
    return input_grad(input_size, w, dy, stride, padding, dilation, groups, epilogue, out, operands, 2)


def conv2d_weight_grad(x, weight_size, dy, stride=1, padding=0, dilation=1, groups=1, *, out=None):
    """conv2d's gradient for its filters: dw[k, c, r, s] = sum over n, p, q of dy[n, k, p, q] * x[n, c, h, w].

    Here h = p*stride - padding + r*dilation, w likewise. Arguments in the order of torch.nn.grad.conv2d_weight.

    Args:
        x: (N, C, H, W).
        weight_size: (K, C / groups, R, S), the shape of the result.
        dy: (N, K, P, Q).

    Returns:
        `out`, or a new array of x's type.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> x = numpy.arange(9, dtype=numpy.float32).reshape(1, 1, 3, 3)
    >>> conv2d_weight_grad(x, (1, 1, 2, 2), numpy.ones((1, 1, 2, 2), numpy.float32))[0, 0]
    array([[ 8., 12.],
           [20., 24.]], dtype=float32)
    """
    return weight_grad(x, weight_size, dy, stride, padding, dilation, groups, out, 2)


def pool(mode, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices, out, dimensions=2):
    window = numbers(kernel_size, "kernel_size", dimensions)
    geometry = geometry_of(dimensions, kernel_size if stride is None else stride, padding, dilation)
    fields = {"mode": mode, "window": window[-2:], "x": x, **geometry.fields}
    if dimensions == 3:
        fields["depth_window"] = window[0]
    n, c, *sizes = image_shape(x, "x", dimensions)
    shape = (n, c, *geometry.outputs(sizes, window, ceil_mode))
    y = out if out is not None else _native.empty(x, shape, None)
    fields["=y"] = y
    if return_indices:
        fields["=indices"] = indices = _native.empty(x, shape, "int32")
    _native.run("pooling", fields, None, {}, None)
    y = y if out is not None else finished(x, y)
    return (y, finished(x, indices)) if return_indices else y


def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False, *, out=None):
    """Max pooling: y[n, c, p, q] = the maximum of x[n, c, h, w] over the window; NaN wins.

    Args:
        x: (N, C, H, W).
        kernel_size, stride, padding, dilation: a number, or two; stride None is kernel_size.
        ceil_mode: round the number of windows up.
        return_indices: also return, in int32, h*W + w of the first maximum.
        out: (N, C, P, Q).

    Returns:
        `out`, or a new array of x's type, channels first; with return_indices: (y, indices).

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> x = numpy.arange(16, dtype=numpy.float32).reshape(1, 1, 4, 4)
    >>> max_pool2d(x, 2)[0, 0]
    array([[ 5.,  7.],
           [13., 15.]], dtype=float32)
    """
    return pool(MAX, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices, out)


def avg_pool2d(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, *, out=None):
    """Average pooling: y[n, c, p, q] = the mean of x[n, c, h, w] over the window.

    Args:
        x: (N, C, H, W).
        kernel_size, stride, padding: a number, or two; stride None is kernel_size.
        ceil_mode: round the number of windows up.
        count_include_pad: divide by the number of taps in the padded image; otherwise by the number in the image.
        out: (N, C, P, Q).

    Returns:
        `out`, or a new array of x's type, channels first.

    Host or device, asynchrony and errors: see the package.

    >>> import numpy
    >>> x = numpy.arange(16, dtype=numpy.float32).reshape(1, 1, 4, 4)
    >>> avg_pool2d(x, 2)[0, 0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]], dtype=float32)
    """
    mode = AVERAGE_WITH_PADDING if count_include_pad else AVERAGE
    return pool(mode, x, kernel_size, stride, padding, 1, ceil_mode, False, out)


def conv3d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, *, epilogue=None, out=None, **operands):
    """conv2d for volumes: y[n, k, o, p, q] = epilogue(sum over c, t, r, s of x[n, c, d, h, w] * w[k, c, t, r, s] + bias[k]).

    Args:
        x: (N, C, D, H, W), of any strides.
        w: (K, C / groups, T, R, S).
        stride, padding, dilation: a number, or three: along depth, height and width.
        out: (N, K, O, P, Q).

    All else is as in conv2d; the indices in an epilogue are n, k, o, p, q.

    >>> import numpy
    >>> x = numpy.arange(8, dtype=numpy.float32).reshape(1, 1, 2, 2, 2)
    >>> conv3d(x, numpy.ones((1, 1, 2, 1, 2), numpy.float32))[0, 0, 0]
    array([[10.],
           [18.]], dtype=float32)
    """
    return forward(None, x, w, bias, stride, padding, dilation, groups, epilogue, out, operands, 3)


def conv_transpose3d(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, *, epilogue=None, out=None,
                     **operands):
    """conv_transpose2d for volumes: x is (N, C, O, P, Q), w is (C, K / groups, T, R, S), the result (N, K, D, H, W).

    >>> import numpy
    >>> conv_transpose3d(numpy.ones((1, 1, 1, 1, 2), numpy.float32), numpy.ones((1, 1, 2, 1, 1), numpy.float32)).shape
    (1, 1, 2, 1, 2)
    """
    return transposed(x, w, bias, stride, padding, output_padding, groups, dilation, epilogue, out, operands, 3)


def conv3d_input_grad(input_size, w, dy, stride=1, padding=0, dilation=1, groups=1, *, epilogue=None, out=None, **operands):
    """conv3d's gradient for its input, (N, C, D, H, W); all else is as in conv2d_input_grad.

    >>> import numpy
    >>> ones = numpy.ones((1, 1, 2, 1, 1), numpy.float32)
    >>> conv3d_input_grad((1, 1, 3, 1, 1), ones, ones).ravel()
    array([1., 2., 1.], dtype=float32)
    """
    return input_grad(input_size, w, dy, stride, padding, dilation, groups, epilogue, out, operands, 3)


def conv3d_weight_grad(x, weight_size, dy, stride=1, padding=0, dilation=1, groups=1, *, out=None):
    """conv3d's gradient for its filters, (K, C / groups, T, R, S); all else is as in conv2d_weight_grad.

    >>> import numpy
    >>> x = numpy.arange(3, dtype=numpy.float32).reshape(1, 1, 3, 1, 1)
    >>> conv3d_weight_grad(x, (1, 1, 2, 1, 1), numpy.ones((1, 1, 2, 1, 1), numpy.float32)).ravel()
    array([1., 3.], dtype=float32)
    """
    return weight_grad(x, weight_size, dy, stride, padding, dilation, groups, out, 3)


def max_pool3d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False, *, out=None):
    """max_pool2d for volumes (N, C, D, H, W); kernel_size, stride, padding and dilation are a number, or three.

    return_indices is supported only by the reference, which computes it on the host: (d*H + h)*W + w of the first maximum.

    >>> import numpy
    >>> max_pool3d(numpy.arange(8, dtype=numpy.float32).reshape(1, 1, 2, 2, 2), 2).ravel()
    array([7.], dtype=float32)
    """
    return pool(MAX, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices, out, 3)


def avg_pool3d(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, *, out=None):
    """avg_pool2d for volumes (N, C, D, H, W); kernel_size, stride and padding are a number, or three.

    >>> import numpy
    >>> avg_pool3d(numpy.arange(8, dtype=numpy.float32).reshape(1, 1, 2, 2, 2), 2).ravel()
    array([3.5], dtype=float32)
    """
    mode = AVERAGE_WITH_PADDING if count_include_pad else AVERAGE
    return pool(mode, x, kernel_size, stride, padding, 1, ceil_mode, False, out, 3)
