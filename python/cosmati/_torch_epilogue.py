"""Epilogues evaluated by PyTorch, for their gradients."""
import ast
import operator

import torch

FUNCTIONS = {
    "abs": torch.abs, "clamp": lambda x, low, high: torch.minimum(torch.maximum(x, as_tensor(low, x)), as_tensor(high, x)),
    "elu": lambda x, alpha: torch.where(x > 0, x, alpha * torch.expm1(torch.where(x > 0, 0, x))), "erf": torch.erf, "exp": torch.exp,
    "gelu": torch.nn.functional.gelu, "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "leaky_relu": lambda x, slope: torch.where(x < 0, slope * x, x), "log": torch.log, "max": lambda a, b: of_two(torch.maximum, a, b),
    "min": lambda a, b: of_two(torch.minimum, a, b), "normal_cdf": torch.special.ndtr, "pow": torch.pow, "relu": torch.relu, "round": torch.round,
    "rsqrt": torch.rsqrt, "select": lambda condition, a, b: torch.where(condition != 0, a, b), "sigmoid": torch.sigmoid,
    "silu": torch.nn.functional.silu, "sqrt": torch.sqrt, "tanh": torch.tanh}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Lt: operator.lt,
             ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne}


def as_tensor(value, like):
    """Filled on the device: a copy from the host cannot be captured in a CUDA graph."""
    return value if isinstance(value, torch.Tensor) else like.new_full((), value)


def of_two(function, a, b):
    like = a if isinstance(a, torch.Tensor) else b
    return function(as_tensor(a, like), as_tensor(b, like))


def broadcast(tensor, letters, order):
    """Returns the operand name[letters] with the dimensions `order` of the result."""
    tensor = tensor.permute(sorted(range(len(letters)), key=lambda d: order.index(letters[d])))
    for d, letter in enumerate(order):
        if letter not in letters:
            tensor = tensor.unsqueeze(d)
    return tensor


def evaluate(text, order, values):
    """Evaluates the epilogue `text` for tensors and numbers by name, including `acc` and `c`; `order`: the indices of the result."""
    values = dict(values)
    *before, last = (part.strip() for part in text.split(";"))
    for part in before:
        if not part.startswith("let "):
            raise RuntimeError(f"'{part}' of the epilogue '{text}' has no gradient; only 'let name = ...' may precede the result")
        name, _, expression = part[4:].partition("=")
        values[name.strip()] = value_of(ast.parse(expression.strip(), mode="eval").body, order, values)
    return value_of(ast.parse(last, mode="eval").body, order, values)


def value_of(node, order, values):
    def inner(one):
        return value_of(one, order, values)

    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return values[node.id]
        case ast.UnaryOp(op=ast.USub()):
            return -inner(node.operand)
        case ast.UnaryOp(op=ast.UAdd()):
            return inner(node.operand)
        case ast.BinOp() if type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](inner(node.left), inner(node.right))
        case ast.Compare(ops=[op]) if type(op) in OPERATORS:
            return OPERATORS[type(op)](inner(node.left), inner(node.comparators[0])) * 1.0
        case ast.Call() if node.func.id in FUNCTIONS:
            return FUNCTIONS[node.func.id](*map(inner, node.args))
        case ast.Subscript():
            letters = [one.id for one in (node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])]
            return broadcast(values[node.value.id], letters, order)
    raise RuntimeError(f"'{ast.unparse(node)}' in an epilogue has no gradient here")
