"""torch.ops.cosmati.* in a PyTorch: gradients, fake kernels, views, when the dispatcher is bypassed; on every available device.

usage: PYTHONPATH=FOLDER_OF_THE_PACKAGE PYTHON_WITH_TORCH check_torch_operators.py
"""
import os
import re
import subprocess
import sys
import unittest

import torch
import torch._inductor.decomposition  # noqa: F401  PyTorch 2.6 fails to import it later, when a test has defined an operator
import torch.fx.experimental.proxy_tensor
import torch.utils._python_dispatch
import torch.utils._pytree as tree

import cosmati
import cosmati.torch as ct
from cosmati import _native

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
OPS = torch.ops.cosmati


def normal(*shape, device, dtype=torch.float64):
    return torch.randn(*shape, device=device, dtype=dtype, requires_grad=True)


class Operators(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def samples(self, device):
        """Yields (operator, arguments) with and without batches, epilogues and geometries."""
        a, b, c, bias = (normal(*shape, device=device) for shape in ((4, 5), (5, 3), (4, 3), (3,)))
        batch, x, w, k, residual = (normal(*shape, device=device) for shape in ((2, 4, 5), (2, 4, 6, 5), (6, 2, 3, 3), (6,), (2, 6, 3, 3)))
        geometry = ([2, 2], [1, 1], [1, 1], 2)
        yield OPS.gemm, (a, b)
        yield OPS.gemm, (a, b, c, 2.0, -0.5)
        yield OPS.gemm, (batch, b)
        yield OPS.gemm_epilogue, (a, b, c, 0.5, 1.0, "let t = alpha*acc + bias[n]; gelu(t) * s + c", "bias", [bias], "s", [1.5])
        yield OPS.gemm_epilogue, (a, b, None, 1.0, 0.0, "clamp(max(acc, 0.1) + bias[n], -1, 2)", "bias", [bias], "", [])
        yield OPS.gemm_epilogue, (batch, b, None, 1.0, 0.0, "tanh(acc) / (1 + exp(-bias[n]))", "bias", [bias], "", [])
        yield OPS.conv2d, (x, w, k, *geometry)
        yield OPS.conv2d, (x, w, None, [1, 1], [0, 2], [1, 2], 2)
        yield OPS.conv2d_epilogue, (x, w, k, *geometry, "sigmoid(acc + bias[k]) * r[n, k, p, q]", "r", [residual], "", [])

    def test_gradients(self):
        for device in DEVICES:
            for operator, arguments in self.samples(device):
                tensors, structure = tree.tree_flatten(arguments)
                where = [i for i, one in enumerate(tensors) if isinstance(one, torch.Tensor)]

                def of_tensors(*given):
                    values = list(tensors)
                    for i, one in zip(where, given):
                        values[i] = one
                    return operator(*tree.tree_unflatten(values, structure))

                self.assertTrue(torch.autograd.gradcheck(of_tensors, [tensors[i] for i in where]), f"{operator} {arguments[5:]}")

    def test_opcheck(self):
        for device in DEVICES:
            for operator, arguments in self.samples(device):
                torch.library.opcheck(operator, arguments)
            x, w, dy = (normal(*shape, device=device).detach() for shape in ((1, 2, 4, 4), (3, 2, 3, 3), (1, 3, 2, 2)))
            torch.library.opcheck(OPS.conv2d_input_grad, ([1, 2, 4, 4], w, dy))
            torch.library.opcheck(OPS.conv2d_weight_grad, (x, [3, 2, 3, 3], dy))

    def test_norms(self):
        for device in DEVICES:
            x, weight, bias = (normal(*shape, device=device) for shape in ((4, 3, 5), (3, 5), (3, 5)))
            for arguments in ((weight, bias), (weight, None), (None, bias), (None, None)):
                self.assertTrue(torch.autograd.gradcheck(lambda x, *rest: ct.layer_norm(x, (3, 5), *rest), (x, *arguments)))
            for w in (weight, None):
                self.assertTrue(torch.autograd.gradcheck(lambda x, w: ct.rms_norm(x, (3, 5), w, .1), (x, w)))
            image, scale, shift = (normal(*shape, device=device) for shape in ((2, 6, 3, 2), (6,), (6,)))
            for arguments in ((scale, shift), (scale, None), (None, shift), (None, None)):
                self.assertTrue(torch.autograd.gradcheck(lambda x, *rest: ct.group_norm(x, 3, *rest), (image, *arguments)))
            torch.testing.assert_close(ct.group_norm(image, 2, scale, shift), torch.nn.functional.group_norm(image, 2, scale, shift))
            for norm, rows, tensors in ((OPS.layer_norm, [3, 5], (x, weight, bias)), (OPS.rms_norm, [3, 5], (x, weight, None)), (OPS.group_norm, 3, (image, scale, shift))):
                for own in (tensors, (tensors[0], None, None)):
                    torch.library.opcheck(norm, (own[0], rows, *own[1:]))
                plain = [None if one is None else one.detach() for one in tensors]
                saved = norm(plain[0], rows, *plain[1:])
                name = norm.__name__ + "_grad"
                torch.library.opcheck(getattr(OPS, name), (saved[0], plain[0], rows, plain[1], *saved[1:], plain[2] is not None))
            for dtype, off in ((torch.float32, 1e-5), (torch.float16, 4e-3), (torch.bfloat16, 3e-2)):
                ours, theirs = [], []
                for function, results in ((ct.layer_norm, ours), (torch.nn.functional.layer_norm, theirs)):
                    inputs = [one.detach().to(dtype).requires_grad_() for one in (x, weight, bias)]
                    y = function(inputs[0], (3, 5), *inputs[1:])
                    results += [y, *torch.autograd.grad(y, inputs, torch.ones_like(y))]
                for mine, other in zip(ours, theirs):
                    torch.testing.assert_close(mine, other, rtol=off, atol=off)

    def test_views_types_and_outputs(self):
        for device in DEVICES:
            whole = torch.randint(-3, 4, (20, 30), device=device).float()
            a, b = whole[::2, 1::3], whole.T[5:15, :7]
            expected = a.double() @ b.double()
            for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
                d = cosmati.gemm(a.to(dtype), b.to(dtype))
                self.assertEqual((d.dtype, d.device), (dtype, a.device))
                self.assertTrue((d.double() == expected).all())
            out = torch.zeros(7, 10, device=device).T
            self.assertIs(cosmati.gemm(a, b, out=out), out)
            self.assertTrue((out.double() == expected).all())
            group = cosmati.grouped_gemm(a.split([4, 0, 6]), [b] * 3)
            self.assertEqual([(one.shape, one.device) for one in group], [((m, 7), a.device) for m in (4, 0, 6)])
            self.assertTrue((torch.cat(group).double() == expected).all())
            self.assertTrue((cosmati.softmax(a).sum(1) - 1).abs().max() < 1e-5)
            self.assertTrue((cosmati.elementwise("relu(x) + y", x=a, y=a[0]) == torch.relu(a) + a[0]).all())
            x = torch.randn(4, 3, 5, device=device)
            mean, variance = torch.zeros(3, device=device), torch.ones(3, device=device)
            reference = torch.nn.functional.batch_norm(x, mean.clone(), variance.clone(), training=True)
            torch.testing.assert_close(cosmati.batch_norm(x, mean, variance, training=True), reference)

    def test_examples_of_documents(self):
        for document in ("python.md", "start/torch.md"):
            with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", document), encoding="utf-8") as file:
                block, = (one for one in re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL) if "import cosmati.torch" in one)
            values = {}
            exec(block, values)
            self.assertTrue(document != "python.md" or (values["product"] == 4).all())

    def test_arguments_are_in_the_order_of_torch(self):
        import inspect

        for name in ("batch_norm", "layer_norm", "rms_norm", "local_response_norm", "softmax", "log_softmax", "cross_entropy", "max_pool2d"):
            def positional(function):
                return [one.name for one in inspect.signature(function).parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]

            theirs = getattr(torch.nn.functional, name)
            mine = positional(getattr(cosmati, name))
            other = positional(getattr(torch.nn.functional, "_max_pool2d") if name == "max_pool2d" else theirs)
            self.assertEqual(mine[1:], [one for one in other[1:] if one in mine], name)
        x, w, bias = (torch.randn(shape) for shape in ((2, 4, 9, 9), (6, 2, 3, 3), (6,)))
        torch.testing.assert_close(cosmati.conv2d(x, w, bias, 2, 1, 2, 2), torch.nn.functional.conv2d(x, w, bias, 2, 1, 2, 2))
        y, v, bias = (torch.randn(shape) for shape in ((2, 4, 5, 5), (4, 3, 3, 3), (6,)))
        torch.testing.assert_close(cosmati.conv_transpose2d(y, v, bias, 2, 1, 1, 2, 1), torch.nn.functional.conv_transpose2d(y, v, bias, 2, 1, 1, 2, 1))
        torch.testing.assert_close(cosmati.avg_pool2d(x, 3, 2, 1, True, False), torch.nn.functional.avg_pool2d(x, 3, 2, 1, True, False))
        dy = torch.randn(2, 6, 4, 4)
        torch.testing.assert_close(cosmati.conv2d_input_grad(x.shape, w, dy, 2, 1, 2, 2)[0], torch.nn.grad.conv2d_input(x.shape, w, dy, 2, 1, 2, 2)[0])
        torch.testing.assert_close(cosmati.conv2d_weight_grad(x, w.shape, dy, 2, 1, 2, 2), torch.nn.grad.conv2d_weight(x, w.shape, dy, 2, 1, 2, 2))

    def test_new_results(self):
        """Results are row-major for any inputs, and no operator records a gradient that it does not have."""
        for device in DEVICES:
            a = torch.randint(-3, 4, (6, 6), device=device).float()
            for x, y in ((a, a), (a.T, a), (a, a.T), (a[::2, ::2], a[1::2, 1::2]), (a[None], a.expand(4, 6, 6)), (a[None, :0, :0], a[None, :0].expand(5, 0, 6))):
                for call in (cosmati.gemm, OPS.gemm):
                    d = call(x, y)
                    self.assertTrue(d.is_contiguous() and d.shape == (x @ y).shape and (d == x @ y).all())
            self.assertTrue(cosmati.softmax(a.T).is_contiguous())
            self.assertIs(type(cosmati.gemm(torch.nn.Parameter(a), a)), torch.Tensor)

    def test_what_lies_between_autograd_and_the_device(self):
        """Operators bypass the dispatcher only if nothing else intervenes."""
        for device in DEVICES:
            a, b = (torch.randint(-3, 4, (4, 4), device=device).float() for _ in range(2))
            for _ in range(2):
                self.assertTrue((OPS.gemm(a, b) == a @ b).all())
                seen = []

                class Mode(torch.utils._python_dispatch.TorchDispatchMode):
                    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                        seen.append(function)
                        return function(*args, **(kwargs or {}))

                with Mode():
                    OPS.gemm(a, b)
                self.assertIn(OPS.gemm.default, seen)
                complex_view = torch.complex(a, b).conj().imag  # negated when it is read
                self.assertTrue(complex_view.is_neg() and (OPS.gemm(complex_view, b) == -b @ b).all())
                traced = torch.fx.experimental.proxy_tensor.make_fx(lambda x, y: OPS.gemm(x, y))(a, b)
                self.assertIn("cosmati.gemm", traced.code)
                functional = torch.func.functionalize(lambda x, y: OPS.gemm(x, y).add_(1))(a, b)
                self.assertTrue((functional == a @ b + 1).all())
                with torch.no_grad():
                    self.assertFalse(OPS.gemm(a.clone().requires_grad_(), b).requires_grad)
                with torch.inference_mode():
                    self.assertTrue((OPS.gemm(a, b) == a @ b).all())
                self.assertTrue(OPS.gemm(a.clone().requires_grad_(), b).requires_grad)
                meta = OPS.gemm(a.to("meta"), b.to("meta"))
                self.assertEqual((meta.device.type, meta.shape), ("meta", (4, 4)))

    def test_kernels_without_the_interpreter(self):
        """direct_kernel computes if nothing is recorded, and otherwise calls the kernel that records."""
        for device in DEVICES:
            a, leaf = torch.ones(2, 2, device=device), torch.ones(2, 2, device=device, requires_grad=True)
            keys = torch._C._dispatch_keys(a)
            asked = []

            def kernel(reaches, compute=lambda *given: ("computed", *given)):
                return _native.direct_kernel(lambda *given: ("recorded", *given), lambda *given: ("below", *given), lambda keys: asked.append(keys) or reaches, compute)

            direct, indirect = kernel(True), kernel(False)
            for given in ((a,), (a, None, 1.0, [a, a], "text", [], (2, 2), True), (leaf.detach(),), ([],)):
                for _ in range(2):
                    self.assertEqual(direct(keys, *given)[0], "computed")
                    self.assertIs(direct(keys, *given)[1], given[0])
                    self.assertEqual(indirect(keys, *given)[:2], ("below", keys))
            self.assertEqual(len(asked), 2)  # once for a key set
            for given in ((leaf,), (a, leaf), (a, None, [a, leaf]), (a, (leaf,)), (leaf * 2,)):
                self.assertEqual(direct(keys, *given)[:2], ("recorded", None))
                self.assertEqual(indirect(keys, *given)[:2], ("recorded", keys))
                self.assertIs(direct(keys, *given)[2], given[0])
                with torch.no_grad():
                    self.assertEqual(direct(keys, *given)[0], "computed")
                    self.assertEqual(indirect(keys, *given)[0], "below")
            product = kernel(True, None)
            self.assertTrue((product(keys, a, a) == 2).all())
            self.assertTrue((product(keys, a, a, a, 2.0, 1.0) == 5).all())
            text = ("s * acc + t[n]", "t", [a[0]], "s", [3.0])
            self.assertTrue((product(keys, a, a, None, 1.0, 0.0, *text) == 7).all())
            for wrong in ((), (a,)):
                self.assertRaises(TypeError, product, keys, *wrong)
            self.assertRaises(TypeError, direct)
            with self.assertRaisesRegex(ValueError, "extent 1 of b"):
                OPS.gemm(a, torch.ones(3, 2, device=device))

            def record(*given):
                raise AssertionError("a product of tensors without gradients was recorded")

            library = torch.library.Library("cosmati", "FRAGMENT")
            name = "direct_" + device
            library.define(name + "(Tensor a, Tensor b, Tensor? c=None, float alpha=1.0, float beta=0.0) -> Tensor")
            library.impl(name, _native.direct_kernel(record, record, ct.reaches_device, None), "Autograd", with_keyset=True)
            self.assertTrue((getattr(OPS, name)(a, a, alpha=0.5) == 1).all())
            with self.assertRaisesRegex(AssertionError, "was recorded"):
                getattr(OPS, name)(leaf, a)

    def test_allocation(self):
        """If PyTorch's allocators are missing, its own functions make new tensors; results have the type of a derived tensor."""
        class Derived(torch.Tensor):
            pass

        for device in DEVICES:
            a = torch.ones(3, 4, device=device)
            derived = a.as_subclass(Derived)
            self.assertIs(type(cosmati.gemm(derived, a.T)), Derived)
            self.assertIs(type(cosmati.gemm(a, a.T)), torch.Tensor)
            with torch.inference_mode():
                self.assertTrue(cosmati.gemm(a, a.T).is_inference())
        program = """
import torch
for name in ("_empty_strided_cpu", "_empty_strided_cuda"):
    if hasattr(torch._C._dynamo.guards, name):
        delattr(torch._C._dynamo.guards, name)
import cosmati, cosmati.torch
for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
    for dtype in (torch.float32, torch.int8):
        a = torch.ones(3, 4, dtype=dtype, device=device)
        for b in (a.T, torch.ones(4, 4, dtype=dtype, device=device)):
            for d in (cosmati.gemm(a, b), torch.ops.cosmati.gemm(a, b)):
                assert d.is_contiguous() and d.device == a.device and d.shape == (3, len(b.T)) and (d == 4).all()
                assert d.dtype == {torch.int8: torch.int32}.get(dtype, dtype)
print("computed")
"""
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        self.assertEqual((found.stdout.strip(), found.returncode), ("computed", 0), found.stderr)

    @unittest.skipUnless(torch.cuda.device_count() > 1, "needs two GPUs")
    def test_device_other_than_the_current_one(self):
        a = torch.ones(3, 4, device="cuda:1")
        for d in (cosmati.gemm(a, a.T), OPS.gemm(a, a.T)):
            self.assertEqual(d.device, a.device)
            self.assertTrue((d == 4).all())

    def test_errors_without_gradient(self):
        a = normal(3, 3, device="cpu")
        d = ct.gemm(a, a, epilogue="store(before, acc); acc", before=torch.zeros(3, 3, dtype=torch.float64))
        with self.assertRaisesRegex(RuntimeError, "has no gradient"):
            d.sum().backward()
        with self.assertRaisesRegex(ValueError, "extent 1 of b"):
            OPS.gemm(a, a[:2])


if __name__ == "__main__":
    print(f"PyTorch {torch.__version__} on {', '.join(DEVICES)}")
    unittest.main(verbosity=1)
