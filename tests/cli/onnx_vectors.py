#!/usr/bin/python3
"""ONNX's node test vectors through `cosmati run`: an independent reference for the operators.

usage: onnx_vectors.py COSMATI BACKEND [--data FOLDER] [--only WORD] [--most-products N] [--jobs N]
needs python3-onnx and libonnx-testdata
Runs every single-operator case of the operators below, convolutions by every algorithm that supports them if the backend has
several (cuda, emulator). Left out, by name: cases with more products than N.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
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
    """Returns the nodes that compute; a Constant is an input."""
    return [node for node in model.graph.node if node.op_type != "Constant"]


def products_of(case):
    """Returns the number of multiplications of a convolution or a product."""
    shapes = [array.shape for array in case.inputs]
    if case.node.op_type == "Conv":
        return case.outputs[0].size * int(np.prod(shapes[1][1:]))
    if case.node.op_type == "ConvTranspose":
        return case.inputs[0].size * int(np.prod(shapes[1][1:]))
    return case.outputs[0].size * shapes[0][-1] if case.node.op_type in ("Gemm", "MatMul") else 0


class Case:
    """A model of one operator, with its inputs and expected outputs."""

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
    """Runs `cosmati run` on arrays."""

    def __init__(self, program, backend, folder):
        self.program, self.backend, self.folder = program, backend, folder
        self.files = 0
        self.options = []

    def of_case(self, name):
        """Returns a Program that works in a separate folder."""
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        return Program(self.program, self.backend, folder)

    def algorithms(self):
        """Returns the algorithms of a convolution; empty if there is no choice."""
        listed = subprocess.run([self.program, "list", "kernels", "--json"], capture_output=True, text=True, check=True).stdout
        lines = [json.loads(line) for line in listed.splitlines()]
        names = [line["kernel"] for line in lines if (line["subject"], line["backend"]) == ("conv", self.backend)]
        return [name for name in names if name != "bias_gradient"] if self.backend in ("cuda", "emulator") else []

    def file(self, array=None):
        self.files += 1
        path = os.path.join(self.folder, f"{self.files}.npy")
        if array is not None:
            np.save(path, array)
        return path

    def run(self, *words, outputs=("--out",)):
        paths = [self.file() for _ in outputs]
        command = [self.program, "run", *map(str, words), "--backend", self.backend, *self.options]
        for option, path in zip(outputs, paths):
            command += [option, path]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if result.returncode != 0:
            raise RuntimeError(f"exit {result.returncode}: {result.stderr.strip()[-300:]}")
        return [np.load(path) for path in paths]


def comma(values):
    return ",".join(str(int(v)) for v in values)


def window_options(case, dimensions):
    """Returns stride, dilation and padding; ONNX gives all beginnings, then all ends."""
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


def layer_norm(case, program):
    x, scale, bias = case.inputs
    options = ["--x", program.file(x), "--weight", program.file(scale), "--bias", program.file(bias), "--axis", case.get("axis", -1),
               "--epsilon", repr(case.get("epsilon", 1e-5))]
    return program.run("layernorm", *options, outputs=("--out", "--save-mean", "--save-inverse")[:len(case.outputs)])


def rms_norm(case, program):
    x, scale = case.inputs
    return program.run("rmsnorm", "--x", program.file(x), "--weight", program.file(scale), "--axis", case.get("axis", -1),
                       "--epsilon", repr(case.get("epsilon", 1e-5)))


def group_norm(case, program):
    """Also InstanceNormalization, where each channel is a group. GroupNormalization had a scale for each group before opset 21."""
    x, scale, bias = case.inputs
    groups = case.attributes.get("num_groups", x.shape[1])
    scale, bias = (np.repeat(one, x.shape[1] // one.size) for one in (scale, bias))
    return program.run("groupnorm", "--x", program.file(x), "--weight", program.file(scale), "--bias", program.file(bias),
                       "--groups", groups, "--epsilon", repr(case.get("epsilon", 1e-5)))


def lrn(case, program):
    return program.run("lrn", "--x", program.file(case.inputs[0]), "--size", case.attributes["size"],
                       "--alpha", repr(case.get("alpha", 1e-4)), "--beta", repr(case.get("beta", 0.75)),
                       "--k", repr(case.get("bias", 1.0)))


def softmax(case, program):
    x = case.inputs[0]
    axis = case.get("axis", -1 if case.opset >= 13 else 1)
    if case.opset < 13:  # older versions treated all axes from this one on as a single axis
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
           "GlobalAveragePool": pooling, "BatchNormalization": batch_norm, "LayerNormalization": layer_norm,
           "RMSNormalization": rms_norm, "GroupNormalization": group_norm, "InstanceNormalization": group_norm, "LRN": lrn, "Softmax": softmax,
           "LogSoftmax": softmax, "Gemm": gemm, "MatMul": matmul, **dict.fromkeys(ACTIVATIONS, activation)}
# Algorithms that must have computed some of the cases, which are small and in f32.
WITH_CASES = ("implicit_gemm", "direct", "direct_tiled", "unroll_gemm", "depthwise", "winograd", "depth_taps")


def verdict(case, program):
    """Describes the error of the answer; None if it is correct."""
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


def by_every_algorithm(case, program, algorithms):
    """Describes the errors of a convolution by each algorithm, and counts the outcomes of each."""
    wrong, counts = [], collections.Counter()
    for name in algorithms:
        program.options = ["--algorithm", name]
        sentence = verdict(case, program)
        refused = "does not support this problem" in sentence
        counts[name, "refused" if refused else "wrong" if sentence else "right"] += 1
        if sentence and not refused:
            wrong.append(f"{name}: {sentence}")
    return "; ".join(wrong), counts


def judged(case, program, algorithms):
    """Describes the error of a case, and the outcome of each algorithm."""
    wrong = verdict(case, program)
    if wrong or case.node.op_type not in ("Conv", "ConvTranspose"):
        return wrong, collections.Counter()
    return by_every_algorithm(case, program, algorithms)


def cases_of(a):
    """Returns the cases to run, and the names of those skipped as too large."""
    cases, large = [], []
    for path in sorted(p for f in FOLDERS for p in glob.glob(f"{a.data}/{f}/*{a.only}*/")):
        model = onnx.load(os.path.join(path, "model.onnx"))
        if [node.op_type in RUNNERS for node in operators(model)] != [True]:
            continue
        case = Case(path.rstrip("/"), model)
        if products_of(case) > a.most_products:
            large.append(case.name)
        else:
            cases.append(case)
    return cases, large


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cosmati")
    parser.add_argument("backend")
    parser.add_argument("--data", default="/usr/share/libonnx-testdata/data")
    parser.add_argument("--only", default="")
    parser.add_argument("--most-products", type=float, default=np.inf)
    parser.add_argument("--jobs", type=int, default=1)
    a = parser.parse_args()
    cases, large = cases_of(a)
    failed, counts = [], collections.Counter()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        program = Program(a.cosmati, a.backend, folder)
        algorithms = program.algorithms()
        verdicts = pool.map(lambda case: judged(case, program.of_case(case.name), algorithms), cases)
        for case, (wrong, fared) in zip(cases, verdicts):
            counts += fared
            if wrong:
                failed.append(case.name)
                print(f"FAIL {case.name}: {wrong}", flush=True)
    if large:
        print(f"NOT RUN, more than {a.most_products:g} products ({len(large)}): {' '.join(large)}")
    for name in algorithms:
        print(f"convolutions by {name}: {counts[name, 'right']} right, {counts[name, 'wrong']} wrong, {counts[name, 'refused']} refused")
    idle = [name for name in algorithms if name in WITH_CASES and counts[name, "right"] == 0 and not a.only]
    failed += idle
    for name in idle:
        print(f"FAIL {name}: it took no case")
    passed = len(cases) - len(set(failed) - set(idle))
    print(f"{a.backend}: {passed} passed, {len(failed)} failed, {len(large)} not run")
    if passed < 100 and not a.only:
        sys.exit(f"only {passed} cases passed of {len(cases)} in {a.data}; expected about 140")
    sys.exit(1 if failed else 0)


main()
