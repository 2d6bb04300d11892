#!/usr/bin/python3
"""ONNX's node test vectors through `cosmati run`: an outside judge for the operators.

usage: onnx_vectors.py COSMATI BACKEND [--data FOLDER] [--only WORD]      needs python3-onnx and libonnx-testdata
Runs every single-operator case of the operators below; only cases with three spatial dimensions are left out, by name.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

ACTIVATIONS = {"Relu": "relu", "LeakyRelu": "leaky_relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Elu": "elu"}
FOLDERS = ("node", "pytorch-converted", "pytorch-operator")


def operators(model):
    """The nodes that compute; a Constant is an input."""
    return [node for node in model.graph.node if node.op_type != "Constant"]


class Case:
    """A model of one operator, with its inputs and the outputs that it should give."""

    def __init__(self, folder, model):
        self.name = os.path.basename(folder)
        self.opset = model.opset_import[0].version
        self.node, = operators(model)
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in self.node.attribute}
        constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        constants.update({node.output[0]: numpy_helper.to_array(node.attribute[0].t)
                          for node in model.graph.node if node.op_type == "Constant"})
        data = os.path.join(folder, "test_data_set_0")

        def load(kind, index):
            with open(os.path.join(data, f"{kind}_{index}.pb"), "rb") as file:
                return numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))

        given = [i.name for i in model.graph.input]
        files = [name for name in given if name not in constants]
        if len(glob.glob(os.path.join(data, "input_*.pb"))) == len(given):
            files = given
        values = dict(constants, **{name: load("input", i) for i, name in enumerate(files)})
        self.inputs = [values[name] for name in self.node.input]
        self.outputs = [load("output", i) for i in range(len(model.graph.output))]

    def get(self, name, default):
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value


class Program:
    """`cosmati run` on arrays."""

    def __init__(self, program, backend, folder):
        self.program, self.backend, self.folder = program, backend, folder
        self.files = 0

    def file(self, array=None):
        self.files += 1
        path = os.path.join(self.folder, f"{self.files}.npy")
        if array is not None:
            np.save(path, array)
        return path

    def run(self, *words, outputs=("--out",)):
        paths = [self.file() for _ in outputs]
        command = [self.program, "run", *map(str, words), "--backend", self.backend]
        for option, path in zip(outputs, paths):
            command += [option, path]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if result.returncode != 0:
            raise RuntimeError(f"exit {result.returncode}: {result.stderr.strip()[-300:]}")
        return [np.load(path) for path in paths]


def comma(values):
    return ",".join(str(int(v)) for v in values)


def window_options(case, dimensions):
    """Stride, dilation and padding; ONNX gives all beginnings, then all ends."""
    options = ["--stride", comma(case.get("strides", [1] * dimensions)),
               "--dilation", comma(case.get("dilations", [1] * dimensions))]
    automatic = case.get("auto_pad", "NOTSET")
    if automatic not in ("NOTSET", ""):
        return options + ["--pad", automatic.lower().replace("_", "-")]
    pads = case.get("pads", [0] * 2 * dimensions)
    order = [pads[i + side * dimensions] for i in range(dimensions) for side in (0, 1)]
    return options + ["--pad", comma(order)]


def convolution(case, program):
    x, w = case.inputs[:2]
    options = window_options(case, x.ndim - 2) + ["--groups", case.get("group", 1)]
    if len(case.inputs) > 2:
        options += ["--operand", "bias=" + program.file(case.inputs[2]), "--epilogue", "acc + bias[k]"]
    direction = "forward"
    if case.node.op_type == "ConvTranspose":
        direction = "transposed"
        if "output_shape" in case.attributes:
            options += ["--output-size", comma(case.attributes["output_shape"])]
        elif "output_padding" in case.attributes:
            options += ["--output-pad", comma(case.attributes["output_padding"])]
    return program.run("conv", "--x", program.file(x), "--w", program.file(w), "--direction", direction, *options)


def pooling(case, program):
    x = case.inputs[0]
    mode = "max" if case.node.op_type == "MaxPool" else "average"
    if case.node.op_type == "GlobalAveragePool":
        return program.run("pool", "--x", program.file(x), "--mode", mode, "--window", comma(x.shape[2:]))
    if mode == "average" and case.get("count_include_pad", 0):
        mode = "average-with-padding"
    options = ["--mode", mode, "--window", comma(case.attributes["kernel_shape"])] + window_options(case, x.ndim - 2)
    if case.get("ceil_mode", 0):
        options.append("--ceil")
    outputs = ["--out"] + (["--indices"] if len(case.outputs) > 1 else [])
    if case.get("storage_order", 0):
        options += ["--storage-order", "column"]
    return program.run("pool", "--x", program.file(x), *options, outputs=outputs)


def batch_norm(case, program):
    x, scale, bias, mean, variance = case.inputs
    options = ["--x", program.file(x), "--scale", program.file(scale), "--bias", program.file(bias),
               "--epsilon", repr(case.get("epsilon", 1e-5))]
    if not case.get("training_mode", 0):
        return program.run("batchnorm", *options, "--mean", program.file(mean), "--variance", program.file(variance))
    y, batch_mean, batch_variance = program.run("batchnorm", *options, "--training",
                                                outputs=("--out", "--save-mean", "--save-variance"))
    momentum = case.get("momentum", 0.9)
    return [y, mean * momentum + batch_mean * (1 - momentum), variance * momentum + batch_variance * (1 - momentum)]


def lrn(case, program):
    return program.run("lrn", "--x", program.file(case.inputs[0]), "--size", case.attributes["size"],
                       "--alpha", repr(case.get("alpha", 1e-4)), "--beta", repr(case.get("beta", 0.75)),
                       "--k", repr(case.get("bias", 1.0)))


def softmax(case, program):
    x = case.inputs[0]
    axis = case.get("axis", -1 if case.opset >= 13 else 1)
    if case.opset < 13:  # then all axes from this one on were one
        x = x.reshape(int(np.prod(x.shape[:axis])) if axis >= 0 else x.size // x.shape[-1], -1)
        axis = 1
    options = ["--log"] if case.node.op_type == "LogSoftmax" else []
    y, = program.run("softmax", "--x", program.file(x), "--axis", axis, *options)
    return [y.reshape(case.inputs[0].shape)]


def gemm(case, program):
    a, b = case.inputs[:2]
    layout = "nt"[case.get("transA", 0)] + "nt"[case.get("transB", 0)]
    options = ["--layout", layout, "--set", f"alpha={case.get('alpha', 1.0)!r}"]
    if len(case.inputs) > 2 and case.get("beta", 1.0) != 0:
        rows, columns = a.shape[layout[0] == "t"], b.shape[layout[1] == "n"]
        c = np.broadcast_to(case.inputs[2], (rows, columns)).copy()
        options += ["--c", program.file(c), "--set", f"beta={case.get('beta', 1.0)!r}"]
    return program.run("gemm", "--a", program.file(a), "--b", program.file(b), *options)


def matmul(case, program):
    a, b = case.inputs
    y, = program.run("gemm", "--a", program.file(a.reshape(-1, *a.shape[-2:]) if a.ndim > 2 else a),
                     "--b", program.file(b.reshape(-1, *b.shape[-2:]) if b.ndim > 2 else b))
    return [y.reshape(case.outputs[0].shape)]


def activation(case, program):
    options = ["--alpha", repr(case.attributes["alpha"])] if "alpha" in case.attributes else []
    return program.run("activation", "--x", program.file(case.inputs[0]), "--function", ACTIVATIONS[case.node.op_type],
                       *options)


RUNNERS = {"Conv": convolution, "ConvTranspose": convolution, "MaxPool": pooling, "AveragePool": pooling,
           "GlobalAveragePool": pooling, "BatchNormalization": batch_norm, "LRN": lrn, "Softmax": softmax,
           "LogSoftmax": softmax, "Gemm": gemm, "MatMul": matmul, **dict.fromkeys(ACTIVATIONS, activation)}
SPATIAL = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool")


def verdict(case, program):
    """What is wrong with the answer, or nothing."""
    try:
        answers = RUNNERS[case.node.op_type](case, program)
    except RuntimeError as error:
        return str(error)
    for answer, expected in zip(answers, case.outputs, strict=True):
        if answer.shape != expected.shape:
            return f"shape {answer.shape}, expected {expected.shape}"
        error = np.abs(answer.astype(np.float64) - expected)
        if not np.all(error <= 1e-6 + 2e-5 * np.abs(expected) + 1e-6 * np.abs(expected).max(initial=0)):
            return f"largest error {error.max()}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cosmati")
    parser.add_argument("backend")
    parser.add_argument("--data", default="/usr/share/libonnx-testdata/data")
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    passed, failed, left_out = 0, [], []
    with tempfile.TemporaryDirectory() as folder:
        program = Program(a.cosmati, a.backend, folder)
        for path in sorted(p for f in FOLDERS for p in glob.glob(f"{a.data}/{f}/*{a.only}*/")):
            model = onnx.load(os.path.join(path, "model.onnx"))
            if [node.op_type in RUNNERS for node in operators(model)] != [True]:
                continue
            case = Case(path.rstrip("/"), model)
            if case.node.op_type in SPATIAL and case.inputs[0].ndim > 4:
                left_out.append(case.name)
                continue
            wrong = verdict(case, program)
            if wrong:
                failed.append(case.name)
                print(f"FAIL {case.name}: {wrong}")
            else:
                passed += 1
    print(f"not run, three spatial dimensions ({len(left_out)}): {' '.join(left_out)}")
    print(f"{a.backend}: {passed} passed, {len(failed)} failed, {len(left_out)} not run")
    if passed < 100 and not a.only:
        sys.exit(f"only {passed} cases were found in {a.data}; expected about 140")
    sys.exit(1 if failed else 0)


main()
