"""PyTorch operators torch.ops.cosmati.*, with gradients and for torch.compile, and modules with epilogues::

    y = cosmati.torch.Linear(512, 256, epilogue="gelu(acc + bias[n])")(x)

PyTorch computes the gradients of an epilogue from the sums before it, which the backward pass recomputes, so that only the
inputs are saved. An epilogue with extra outputs has no gradient.
"""
from typing import Optional, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.nn.modules.utils import _pair as pair

from . import _convolutions, _layers, _native
from ._torch_epilogue import evaluate

Pair = Union[int, Tuple[int, int]]
Operand = Union[Tensor, float]
CAST_UNDER_AUTOCAST = (torch.float32, torch.float16, torch.bfloat16)
EPILOGUE = "str epilogue, str names, Tensor[] operands, str number_names, float[] numbers"
GEOMETRY = "int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1"

torch.library.define("cosmati::gemm", "(Tensor a, Tensor b, Tensor? c=None, float alpha=1.0, float beta=0.0) -> Tensor")
torch.library.define("cosmati::gemm_epilogue", f"(Tensor a, Tensor b, Tensor? c, float alpha, float beta, {EPILOGUE}) -> Tensor")
torch.library.define("cosmati::conv2d", f"(Tensor x, Tensor w, Tensor? bias=None, {GEOMETRY}) -> Tensor")
torch.library.define("cosmati::conv2d_epilogue", "(Tensor x, Tensor w, Tensor? bias, int[2] stride, int[2] padding, int[2] dilation, "
                                                 f"int groups, {EPILOGUE}) -> Tensor")
torch.library.define("cosmati::conv2d_input_grad", f"(int[] input_size, Tensor w, Tensor dy, {GEOMETRY}) -> Tensor")
torch.library.define("cosmati::conv2d_weight_grad", f"(Tensor x, int[] weight_size, Tensor dy, {GEOMETRY}) -> Tensor")
NORMS = {"layer_norm": "int[] normalized_shape", "rms_norm": "int[] normalized_shape", "group_norm": "int num_groups"}
for name, rows in NORMS.items():  # y, then the tensors saved for the gradient; an absent mean, weight or bias is empty
    torch.library.define(f"cosmati::{name}", f"(Tensor x, {rows}, Tensor? weight=None, Tensor? bias=None, float? eps=1e-5) "
                                             "-> (Tensor, Tensor, Tensor)")
    torch.library.define(f"cosmati::{name}_grad", f"(Tensor dy, Tensor x, {rows}, Tensor? weight, Tensor mean, Tensor inverse, "
                                                  "bool has_bias) -> (Tensor, Tensor, Tensor)")


def computes(*operators):
    """Registers a function as these operators for the CPU and CUDA."""
    def register(function):
        for name in operators:
            torch.library.impl("cosmati::" + name, ("cpu", "cuda"), function)
        return function
    return register


def has_shape_of(*operators):
    """Registers a function that returns the outputs of these operators without computing them."""
    return lambda function: [torch.library.register_fake("cosmati::" + name, function) for name in operators]


def reaches_device(keys):
    """Whether the dispatch key after those of autograd is that of a device."""
    after = (keys & torch._C._after_autograd_keyset).highestPriorityTypeId()
    return after in (torch._C.DispatchKey.CPU, torch._C.DispatchKey.CUDA)


def differentiable(name, compute, backward, context):
    """Registers the autograd kernel of an operator: as torch.library.register_autograd does, but with less work per call. `compute`
    is None for products, which the extension computes itself. context(ctx, inputs, output) keeps what backward(ctx, *gradients) needs;
    backward returns a gradient for each input, and a list of them for a list of tensors."""
    operator = getattr(torch.ops.cosmati, name).default
    arguments = operator._schema.arguments
    defaults = [one.default_value for one in arguments]
    lists = [i for i, one in enumerate(arguments) if str(one.type) == "List[Tensor]"]
    at = lists[0] if lists else len(arguments)

    def below(keys, *inputs):
        with torch._C._AutoDispatchBelowAutograd():
            return operator.redispatch(keys & torch._C._after_autograd_keyset, *inputs)

    class Recorded(torch.autograd.Function):
        """Its arguments are those of the operator, with the tensors of the list moved to the end, followed by the key set, or None if
        the next key is that of a device."""

        @staticmethod
        def forward(ctx, *given):
            *inputs, keys = given
            if lists:
                inputs = *inputs[:at], inputs[len(arguments) - 1:], *inputs[at:len(arguments) - 1]
            output = (compute or _native.torch_gemm)(*inputs) if keys is None else below(keys, *inputs)
            context(ctx, inputs, output)
            return output

        @staticmethod
        def backward(ctx, *gradients):
            found = backward(ctx, *gradients)
            return *found[:at], *found[at + 1:], *(found[at] if lists else ()), None

    def record(keys, *inputs):
        inputs = *inputs, *defaults[len(inputs):]
        if lists:
            inputs = *inputs[:at], *inputs[at + 1:], *inputs[at]
        return Recorded.apply(*inputs, keys)

    LIBRARY.impl(name, _native.direct_kernel(record, below, reaches_device, compute), "Autograd", with_keyset=True)


LIBRARY = torch.library.Library("cosmati", "FRAGMENT")  # kernels live as long as it does


def casts_under_autocast(name):
    """Under torch.autocast the first two tensors of an operator are cast, as torch.mm and conv2d do; those that the epilogue reads are not."""
    for device in ("cpu", "cuda"):
        key = "Autocast" + device.upper()
        keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

        def kernel(*arguments, device=device, keys=keys):
            with torch._C._ExcludeDispatchKeyGuard(keys):
                dtype = torch.get_autocast_dtype(device)
                cast = [one.to(dtype) if one.dtype in CAST_UNDER_AUTOCAST else one for one in arguments[:2]]
                return getattr(torch.ops.cosmati, name)(*cast, *arguments[2:])

        LIBRARY.impl(name, kernel, key)


def named(names, operands, number_names, numbers):
    return {**dict(zip(names.split(), operands)), **dict(zip(number_names.split(), numbers))}


computes("gemm", "gemm_epilogue")(_native.torch_gemm)


@has_shape_of("gemm", "gemm_epilogue")
def _(a, b, c=None, alpha=1.0, beta=0.0, epilogue=None, names="", operands=(), number_names="", numbers=()):
    batches = [one.shape[0] for one in (a, b) if one.dim() == 3]
    batch = batches if len(batches) < 2 else [batches[1] if batches[0] == 1 else batches[0]]
    kind = {torch.int8: torch.int32, torch.uint8: torch.int32, torch.float8_e4m3fn: torch.float32, torch.float8_e5m2: torch.float32}
    return a.new_empty([*batch, a.shape[-2], b.shape[-1]], dtype=kind.get(a.dtype, a.dtype))


@computes("conv2d", "conv2d_epilogue")
def compute_conv2d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, epilogue=None, names="", operands=(), number_names="", numbers=()):
    return _convolutions.forward(None, x, w, bias, pair(stride), pair(padding), pair(dilation), groups, epilogue, None,
                                 named(names, operands, number_names, numbers))


@has_shape_of("conv2d", "conv2d_epilogue")
def _(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, epilogue=None, names="", operands=(), number_names="", numbers=()):
    sizes = _convolutions.extents(x.shape[2:], w.shape[2:], pair(stride), pair(padding), pair(dilation))
    return x.new_empty([x.shape[0], w.shape[0], *sizes])


@computes("conv2d_input_grad")
def _(input_size, w, dy, stride=1, padding=0, dilation=1, groups=1):
    return _convolutions.conv2d_input_grad(input_size, w, dy, pair(stride), pair(padding), pair(dilation), groups)


@has_shape_of("conv2d_input_grad")
def _(input_size, w, dy, stride=1, padding=0, dilation=1, groups=1):
    return dy.new_empty(input_size)


@computes("conv2d_weight_grad")
def _(x, weight_size, dy, stride=1, padding=0, dilation=1, groups=1):
    return _convolutions.conv2d_weight_grad(x, weight_size, dy, pair(stride), pair(padding), pair(dilation), groups)


@has_shape_of("conv2d_weight_grad")
def _(x, weight_size, dy, stride=1, padding=0, dilation=1, groups=1):
    return x.new_empty(weight_size)


def through_epilogue(text, order, tensors, numbers, dy):
    """The gradients of the epilogue for each of `tensors`, acc first."""
    with torch.enable_grad():
        leaves = {name: tensor.detach().requires_grad_() for name, tensor in tensors.items() if tensor is not None}
        y = evaluate(text, order, {**numbers, **leaves})
        found = torch.autograd.grad(y, list(leaves.values()), dy.to(y.dtype).expand_as(y), allow_unused=True, materialize_grads=True)
    return dict(zip(leaves, found))


def saved_operands(ctx, inputs, first, epilogue):
    """Keeps the first `first` tensors of the inputs and the operands; `epilogue`: its index among the inputs, if there is one."""
    ctx.epilogue, ctx.names, operands, ctx.number_names, ctx.numbers = inputs[epilogue:] or (None, "", (), "", ())
    ctx.save_for_backward(*inputs[:first], *operands)


def of_operands(ctx, gradients):
    """The gradients of the last five inputs, if the operator has an epilogue."""
    return () if ctx.epilogue is None else (None, None, [gradients[name] for name in ctx.names.split()], None, None)


def gemm_context(ctx, inputs, output):
    ctx.alpha, ctx.beta = inputs[3:5]
    saved_operands(ctx, inputs, 3, 5)


def summed(gradient, like):
    """Returns the gradient of a tensor that was broadcast."""
    return gradient if gradient.shape == like.shape else gradient.sum_to_size(like.shape)


def gemm_backward(ctx, dy):
    a, b, c, *operands = ctx.saved_tensors
    needs = ctx.needs_input_grad
    if ctx.epilogue is None:
        gradients = {"acc": dy * ctx.alpha if ctx.alpha != 1 else dy, "c": dy * ctx.beta if needs[2] else None}
    else:
        tensors = {"acc": torch.ops.cosmati.gemm(a, b), "c": c, **dict(zip(ctx.names.split(), operands))}
        numbers = {"alpha": ctx.alpha, "beta": ctx.beta, **dict(zip(ctx.number_names.split(), ctx.numbers))}
        gradients = through_epilogue(ctx.epilogue, ["batch", "m", "n"][3 - dy.dim():], tensors, numbers, dy)
    dacc = gradients["acc"].to(a.dtype)
    da = summed(torch.ops.cosmati.gemm(dacc, b.mT), a) if needs[0] else None
    db = summed(torch.ops.cosmati.gemm(a.mT, dacc), b) if needs[1] else None
    dc = summed(gradients["c"], c).to(c.dtype) if needs[2] else None
    return da, db, dc, None, None, *of_operands(ctx, gradients)


def conv2d_context(ctx, inputs, output):
    ctx.geometry = (*map(pair, inputs[3:6]), inputs[6])
    saved_operands(ctx, inputs, 3, 7)


def conv2d_backward(ctx, dy):
    x, w, bias, *operands = ctx.saved_tensors
    gradients = {"acc": dy}
    if ctx.epilogue is None:
        gradients["bias"] = dy.sum((0, 2, 3)) if ctx.needs_input_grad[2] else None
    else:
        tensors = {"acc": torch.ops.cosmati.conv2d(x, w, None, *ctx.geometry), "bias": bias, **dict(zip(ctx.names.split(), operands))}
        gradients |= through_epilogue(ctx.epilogue, ["n", "k", "p", "q"], tensors,
                                      dict(zip(ctx.number_names.split(), ctx.numbers)), dy)
    dacc = gradients["acc"].to(x.dtype)
    needs = ctx.needs_input_grad
    dx = torch.ops.cosmati.conv2d_input_grad(x.shape, w, dacc, *ctx.geometry) if needs[0] else None
    dw = torch.ops.cosmati.conv2d_weight_grad(x, w.shape, dacc, *ctx.geometry) if needs[1] else None
    return dx, dw, gradients.get("bias"), None, None, None, None, *of_operands(ctx, gradients)


for ending in ("", "_epilogue"):
    differentiable("gemm" + ending, None, gemm_backward, gemm_context)
    casts_under_autocast("gemm" + ending)
    differentiable("conv2d" + ending, compute_conv2d, conv2d_backward, conv2d_context)
    casts_under_autocast("conv2d" + ending)


def define_norm(name):
    @computes(name)
    def compute(x, rows, weight=None, bias=None, eps=1e-5):
        y, mean, inverse = _layers.normalize_rows(name, x, rows, weight, bias, eps, saves=True)
        return y, inverse.new_empty(0) if mean is None else mean, inverse

    @has_shape_of(name)
    def _(x, rows, weight=None, bias=None, eps=1e-5):
        kind = torch.float64 if x.dtype == torch.float64 else torch.float32
        shape = [x.shape[0], rows] if name == "group_norm" else [*x.shape[:x.dim() - len(rows)], *[1] * len(rows)]
        inverse = x.new_empty(shape, dtype=kind)
        return x.new_empty(x.shape), inverse.new_empty(0) if name == "rms_norm" else torch.empty_like(inverse), inverse

    @computes(name + "_grad")
    def _(dy, x, rows, weight, mean, inverse, has_bias):
        dx, dweight, dbias = _layers.gradients_of_rows(name, dy, x, rows, weight, mean if mean.numel() else None, inverse,
                                                       has_bias)
        return dx, dx.new_empty(0) if dweight is None else dweight, dx.new_empty(0) if dbias is None else dbias

    @has_shape_of(name + "_grad")
    def _(dy, x, rows, weight, mean, inverse, has_bias):
        dweight = x.new_empty(0) if weight is None else weight.new_empty(weight.shape)
        return x.new_empty(x.shape), dweight, x.new_empty(0 if not has_bias else x.shape[1] if name == "group_norm" else rows)

    def context(ctx, inputs, output):
        x, ctx.rows, weight, bias = inputs[:4]
        ctx.bias_type = None if bias is None else bias.dtype
        ctx.save_for_backward(x, weight, *output[1:])
        ctx.mark_non_differentiable(*output[1:])

    def backward(ctx, dy, *_):
        x, weight, mean, inverse = ctx.saved_tensors
        operator = getattr(torch.ops.cosmati, name + "_grad")
        dx, dweight, dbias = operator(dy, x, ctx.rows, weight, mean, inverse, ctx.bias_type is not None)
        return dx, None, None if weight is None else dweight, None if ctx.bias_type is None else dbias.to(ctx.bias_type), None

    differentiable(name, compute, backward, context)


for name in NORMS:
    define_norm(name)


def last_dimensions(normalized_shape):
    return [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)


def layer_norm(x: Tensor, normalized_shape: Union[int, Sequence[int]], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-5) -> Tensor:
    """cosmati.layer_norm as a PyTorch operator, with gradients for x, weight and bias, computed with sums over the rows in a
    fixed order."""
    return torch.ops.cosmati.layer_norm(x, last_dimensions(normalized_shape), weight, bias, eps)[0]


def rms_norm(x: Tensor, normalized_shape: Union[int, Sequence[int]], weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor:
    """cosmati.rms_norm as a PyTorch operator, with gradients for x and weight, computed with sums over the rows in a fixed order."""
    return torch.ops.cosmati.rms_norm(x, last_dimensions(normalized_shape), weight, None, eps)[0]


def group_norm(x: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    """cosmati.group_norm as a PyTorch operator, with gradients for x, weight and bias, computed with sums over the images in a
    fixed order."""
    return torch.ops.cosmati.group_norm(x, num_groups, weight, bias, eps)[0]


def split(operands):
    """Returns names, operands, number_names and numbers for the operators."""
    names, tensors, number_names, numbers = [], [], [], []
    for name, value in operands.items():
        if isinstance(value, Tensor):
            names.append(name)
            tensors.append(value)
        else:
            number_names.append(name)
            numbers.append(float(value))
    return " ".join(names), tensors, " ".join(number_names), numbers


def gemm(a: Tensor, b: Tensor, c: Optional[Tensor] = None, *, alpha: float = 1.0, beta: float = 0.0, epilogue: Optional[str] = None,
         **operands: Operand) -> Tensor:
    """cosmati.gemm as a PyTorch operator, with gradients for a, b, c and the tensors of the epilogue. Under torch.autocast a and b
    are cast."""
    if epilogue is None:
        return torch.ops.cosmati.gemm(a, b, c, alpha, beta)
    return torch.ops.cosmati.gemm_epilogue(a, b, c, alpha, beta, epilogue, *split(operands))


def padding_of_same(window, stride, dilation):
    """Returns the padding before and after each dimension that preserves the size of the image; the larger half is after it."""
    if any(one != 1 for one in stride):
        raise ValueError(f"padding = 'same' with stride = {tuple(stride)}; expected stride 1")
    reach = [dilation[i] * (window[i] - 1) for i in range(2)]
    return [(one // 2, one - one // 2) for one in reach]


def conv2d(x: Tensor, w: Tensor, bias: Optional[Tensor] = None, stride: Pair = 1, padding: Union[str, Pair] = 0, dilation: Pair = 1,
           groups: int = 1, *, epilogue: Optional[str] = None, **operands: Operand) -> Tensor:
    """cosmati.conv2d as a PyTorch operator, with gradients for x, w, bias and the tensors of the epilogue. x is (N, C, H, W) or, for
    one image, (C, H, W); padding may be "valid" or "same". Under torch.autocast x and w are cast."""
    stride, dilation = pair(stride), pair(dilation)
    if padding == "valid":
        padding = 0
    elif padding == "same":
        (top, bottom), (left, right) = padding_of_same(w.shape[2:], stride, dilation)
        padding = top, left
        if bottom > top or right > left:  # an operator pads both sides equally
            x = torch.nn.functional.pad(x, (0, right - left, 0, bottom - top))
    elif isinstance(padding, str):
        raise ValueError(f"padding = {padding!r}; valid values: 'valid', 'same', a number, or two: vertical and horizontal")
    if x.dim() == 3:
        return conv2d(x.unsqueeze(0), w, bias, stride, padding, dilation, groups, epilogue=epilogue, **operands).squeeze(0)
    geometry = stride, pair(padding), dilation, groups
    if epilogue is None:
        return torch.ops.cosmati.conv2d(x, w, bias, *geometry)
    return torch.ops.cosmati.conv2d_epilogue(x, w, bias, *geometry, epilogue, *split(operands))


class Linear(torch.nn.Linear):
    """torch.nn.Linear: y = epilogue(x @ weight.T), by default acc + bias[n]. Other tensors and numbers that the epilogue names
    are passed to forward by name; for tensors with a dimension m or n, x is viewed as (m, in_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None, *,
                 epilogue: Optional[str] = None) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        self.epilogue = epilogue or ("acc + bias[n]" if bias else None)

    def forward(self, x: Tensor, **operands: Operand) -> Tensor:
        if self.bias is not None:
            operands["bias"] = self.bias
        if x.dim() == 2:
            return gemm(x, self.weight.T, epilogue=self.epilogue, **operands)
        y = gemm(x.reshape(-1, self.in_features), self.weight.T, epilogue=self.epilogue, **operands)
        return y.reshape(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, epilogue={self.epilogue!r}"


class Conv2d(torch.nn.Conv2d):
    """torch.nn.Conv2d, with its arguments: y = epilogue(the sums), by default acc + bias[k]. Unless padding_mode is "zeros",
    PyTorch pads the images first."""

    def __init__(self, *arguments, epilogue: Optional[str] = None, **named_arguments) -> None:
        super().__init__(*arguments, **named_arguments)
        self.epilogue = epilogue

    def forward(self, x: Tensor, **operands: Operand) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            x = torch.nn.functional.pad(x, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = 0
        return conv2d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups, epilogue=self.epilogue, **operands)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, epilogue={self.epilogue!r}"
