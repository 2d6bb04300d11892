"""cosmati.torch in a PyTorch: modules, torch.compile, CUDA graphs, autocast; on every available device.

usage: PYTHONPATH=FOLDER_OF_THE_PACKAGE PYTHON_WITH_TORCH check_torch_modules.py
"""
import importlib.util
import os
import shutil
import sysconfig
import typing
import unittest

import torch

import cosmati.torch as ct

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
OPS = torch.ops.cosmati
TENSOR_CORES = dict(rtol=2e-3, atol=2e-3)  # PyTorch's convolutions of float32 use TF32 on a GPU


def missing_of_inductor(device):
    """Returns what torch.compile needs for the device and does not find, or None."""
    if device == "cuda":
        return None if importlib.util.find_spec("triton") else "Triton"
    if not shutil.which("g++"):
        return "g++"
    return None if os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")) else "Python.h"


def small_model(device):
    return torch.nn.Sequential(ct.Conv2d(3, 4, 3, epilogue="relu(acc + bias[k])"), torch.nn.Flatten(), torch.nn.LayerNorm(16),
                               ct.Linear(16, 2, epilogue="tanh(acc + bias[n])")).to(device)


def gradients_of(model):
    found = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    return found


class Modules(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        torch.compiler.reset()

    def test_epilogues(self):
        for device in DEVICES:
            for mine, theirs, shape, epilogue, after in (
                    (ct.Linear, torch.nn.Linear, (2, 3, 8), "gelu(acc + bias[n])", torch.nn.functional.gelu),
                    (ct.Linear, torch.nn.Linear, (3, 8), "gelu(acc + bias[n])", torch.nn.functional.gelu),
                    (ct.Linear, torch.nn.Linear, (8,), "gelu(acc + bias[n])", torch.nn.functional.gelu),
                    (ct.Conv2d, torch.nn.Conv2d, (2, 8, 5, 5), "relu(acc + bias[k])", torch.relu)):
                size = () if mine is ct.Linear else (3,)
                one, other = mine(8, 6, *size, epilogue=epilogue).to(device), theirs(8, 6, *size).to(device)
                plain = mine(8, 6, *size, bias=False).to(device)
                other.load_state_dict(one.state_dict())
                x = torch.randn(shape, device=device)
                torch.testing.assert_close(one(x), after(other(x)), **TENSOR_CORES)
                other.bias = None
                plain.load_state_dict(other.state_dict())
                torch.testing.assert_close(plain(x), other(x), **TENSOR_CORES)
                one(x).sum().backward()
                self.assertIsNotNone(one.bias.grad)
                self.assertIn(epilogue, repr(one))

    def test_conv2d_is_that_of_torch(self):
        """padding by name and by mode, images without a batch, in float64."""
        cases = [dict(padding=padding, dilation=dilation) for padding in ("same", "valid", 2, (0, 1)) for dilation in (1, (2, 3))]
        cases += [dict(padding=1, padding_mode=mode, stride=2) for mode in ("reflect", "replicate", "circular")]
        cases += [dict(padding="same", padding_mode="reflect"), dict(padding="same", groups=2)]
        for device in DEVICES:
            for named in cases:
                for window in (3, (2, 4)):
                    one, other = (kind(4, 6, window, dtype=torch.float64, device=device, **named) for kind in (ct.Conv2d, torch.nn.Conv2d))
                    other.load_state_dict(one.state_dict())
                    for shape in ((2, 4, 13, 12), (4, 13, 12)):
                        x, y = (torch.randn(shape, dtype=torch.float64, device=device, generator=torch.Generator(device).manual_seed(2)).requires_grad_() for _ in range(2))
                        found, expected = one(x), other(y)
                        self.assertEqual(found.shape, expected.shape)
                        torch.testing.assert_close(found, expected)
                        found.square().sum().backward()
                        expected.square().sum().backward()
                        torch.testing.assert_close(x.grad, y.grad)
                    torch.testing.assert_close(one.weight.grad, other.weight.grad)
        with self.assertRaisesRegex(ValueError, "expected stride 1"):
            ct.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3), stride=2, padding="same")
        with self.assertRaisesRegex(ValueError, "valid values: 'valid', 'same'"):
            ct.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3), padding="some")

    def compiled(self, device, **options):
        model = small_model(device)
        x = torch.randn(2, 3, 4, 4, device=device)
        expected = model(x)
        expected.square().sum().backward()
        gradients = gradients_of(model)
        fast = torch.compile(model, fullgraph=True, **options)
        for _ in range(4):  # CUDA graphs are captured after the first calls
            if options.get("mode") == "reduce-overhead":
                torch.compiler.cudagraph_mark_step_begin()
            found = fast(x)
            torch.testing.assert_close(found, expected, **TENSOR_CORES)
            found.square().sum().backward()
            for parameter, gradient in zip(gradients_of(model), gradients):
                torch.testing.assert_close(parameter, gradient, **TENSOR_CORES)
        with torch.no_grad():
            torch.testing.assert_close(fast(x), expected, **TENSOR_CORES)

    def test_compile_without_inductor(self):
        for device in DEVICES:
            self.compiled(device, backend="aot_eager")
            self.compiled(device, backend="aot_eager", dynamic=True)

    def test_compile(self):
        for device in DEVICES:
            for options in ({}, {"mode": "reduce-overhead"}):
                with self.subTest(device=device, **options):
                    if missing := missing_of_inductor(device):
                        self.skipTest(f"torch.compile for {device} needs {missing}, which is missing here")
                    torch.compiler.reset()
                    self.compiled(device, **options)

    def test_autocast(self):
        for device in DEVICES:
            a, b, bias, x, w, k = (torch.randn(*shape, device=device, requires_grad=True)
                                   for shape in ((4, 8), (8, 6), (6,), (2, 4, 5, 5), (6, 4, 3, 3), (6,)))
            for dtype in (torch.bfloat16, torch.float16):
                near = dict(rtol=5e-2, atol=0.1)  # sums of 8 to 36 products of 8 bits
                with torch.autocast(device, dtype):
                    found = (ct.gemm(a, b), ct.gemm(a, b, epilogue="relu(acc + bias[n])", bias=bias), ct.conv2d(x, w, k, padding=1),
                             ct.conv2d(x, w, k, padding=1, epilogue="relu(acc + bias[k])"), OPS.gemm(a=a, b=b, alpha=1.0))
                    double = ct.gemm(a.double(), b.double())
                    with torch.autocast(device, enabled=False):
                        self.assertEqual(ct.gemm(a, b).dtype, torch.float32)
                convolved = torch.nn.functional.conv2d(x, w, k, padding=1)
                for one, other in zip(found, (a @ b, torch.relu(a @ b + bias), convolved, torch.relu(convolved), a @ b)):
                    self.assertEqual(one.dtype, dtype)
                    torch.testing.assert_close(one.float(), other, **near)
                self.assertEqual(double.dtype, torch.float64)
                inputs = (a, b, bias, x, w, k)
                gradients = torch.autograd.grad(sum(one.float().sum() for one in found), inputs)
                self.assertEqual([one.dtype for one in gradients], [torch.float32] * 6)
                self.assertEqual([one.shape for one in gradients], [one.shape for one in inputs])
                torch.compiler.reset()  # PyTorch 2.6 reuses what was compiled for another type
                compiled = torch.compile(lambda a, b: ct.gemm(a, b), backend="aot_eager", fullgraph=True)
                with torch.autocast(device, dtype):
                    self.assertEqual(compiled(a, b).dtype, dtype)

    def test_annotations(self):
        for function in (ct.gemm, ct.conv2d, ct.layer_norm, ct.rms_norm, ct.group_norm, ct.Linear.forward, ct.Conv2d.forward):
            told = typing.get_type_hints(function)
            self.assertIs(told.pop("return"), torch.Tensor)
            self.assertIs(told.pop("x" if "x" in told else "a"), torch.Tensor)
            self.assertTrue(told)


@unittest.skipUnless("cuda" in DEVICES, "CUDA graphs are captured on a GPU, and there is none here")
class Graphs(unittest.TestCase):
    """CUDA graphs: a replay computes what was captured, from the current contents of its inputs."""

    def check(self, function, *inputs, warm=3):
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(warm):
                function(*inputs)
        torch.cuda.current_stream().wait_stream(stream)
        with torch.cuda.graph(graph):
            found = function(*inputs)
        for seed in range(3):
            torch.manual_seed(seed)
            with torch.no_grad():
                for one in inputs:
                    one.copy_(torch.randn_like(one))
            graph.replay()
            torch.cuda.synchronize()
            captured = [one.clone() for one in found]
            for one, other in zip(captured, function(*inputs)):
                torch.testing.assert_close(one, other)
        return captured

    def tensors(self, *shapes):
        return [torch.randn(shape, device="cuda") for shape in shapes]

    def test_products(self):
        for operator in (lambda a, b: [OPS.gemm(a, b)], lambda a, b: [ct.gemm(a, b.half().float(), alpha=0.5)]):
            self.check(operator, *self.tensors((64, 64), (64, 48)))

    def test_epilogue(self):
        self.check(lambda a, b, bias: [ct.gemm(a, b, epilogue="gelu(acc + bias[n]) * s", bias=bias, s=0.5)], *self.tensors((64, 32), (32, 48), (48,)))

    def test_epilogue_with_backward(self):
        def step(a, b, bias):
            inputs = [one.detach().requires_grad_() for one in (a, b, bias)]
            y = ct.gemm(*inputs[:2], epilogue="clamp(max(acc, 0.1) + bias[n], -1, 2)", bias=inputs[2])
            return [y.detach(), *torch.autograd.grad(y.square().sum(), inputs)]

        self.check(step, *self.tensors((64, 32), (32, 48), (48,)))

    def test_conv2d(self):
        for dtype in (torch.float32, torch.float16):
            self.check(lambda x, w, k: [ct.conv2d(x.to(dtype), w.to(dtype), k.to(dtype), padding=1)], *self.tensors((2, 8, 12, 12), (16, 8, 3, 3), (16,)))

    def test_module_with_backward(self):
        model = small_model("cuda")
        parameters = tuple(model.parameters())

        def step(x):
            y = model(x)
            return [y.detach(), *torch.autograd.grad(y.square().sum(), parameters)]

        captured = self.check(step, *self.tensors((2, 3, 4, 4)))
        self.assertEqual(len(captured), 1 + len(parameters))


if __name__ == "__main__":
    print(f"PyTorch {torch.__version__} on {', '.join(DEVICES)}; torch.compile " + ", ".join(
        f"for {device} " + (f"is not tested: no {missing}" if (missing := missing_of_inductor(device)) else "is tested") for device in DEVICES))
    unittest.main(verbosity=1)
