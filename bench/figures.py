#!/usr/bin/python3
"""Measures every promised figure that this machine can measure, and reports whether each is met, or by how much it falls short.

usage: figures.py COSMATI [--only WORD ...] [--mnist FOLDER] [--fashion FOLDER] [--dcgan FOLDER] [--torch PYTHON] [--out FILE]
                  [--gpu-out FILE] [--gpu-parts lenet5|mnist|dcgan|gan ...]
    --torch: a python with PyTorch (pip install torch), for comparisons; also $TORCH_PYTHON
Exit status 1 if a figure is short.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import convolution_figures  # noqa: E402
import gemm_figures  # noqa: E402
import gpu_figures  # noqa: E402
from measure import ROOT, Results, alternate, json_lines, seconds_of, torch_name  # noqa: E402

PEERS = os.path.join(ROOT, "bench", "peers")
THREADS = len(os.sched_getaffinity(0))


def train(program, data, *options):
    """Returns the JSON Lines of one training run: a line for each epoch, then the result."""
    with tempfile.TemporaryDirectory() as folder:
        return json_lines([program, "train", "lenet5", "--data", data, "--json", "--save", f"{folder}/m.safetensors",
                           *options])


def accuracy(results, name, program, data, promised, *options):
    """Reports the mean test accuracy in percent over seeds 1, 2 and 3."""
    values = [100 * train(program, data, "--seed", seed, *options)[-1]["accuracy"] for seed in (1, 2, 3)]
    results.report(name, statistics.mean(values), promised, "%", seeds={1: values[0], 2: values[1], 3: values[2]})


def training_accuracies(a, results):
    accuracy(results, "LeNet-5 modern, Fashion-MNIST, 10 epochs", a.cosmati, a.fashion, 90.0)
    if not os.path.isdir(a.mnist):
        results.skip("LeNet-5 on MNIST", f"{a.mnist} is not a folder; pass --mnist FOLDER")
        return
    accuracy(results, "LeNet-5 modern, MNIST, 10 epochs", a.cosmati, a.mnist, 99.0)
    accuracy(results, "LeNet-5 chapter, MNIST, 20 epochs", a.cosmati, a.mnist, 98.5, "--variant", "chapter")
    accuracy(results, "LeNet-5 lecun1998, MNIST, 20 epochs", a.cosmati, a.mnist, 98.8, "--variant", "lecun1998")


def training_speed(a, results):
    for batch, promised in ((64, 25000), (256, 40000)):
        def ours(batch=batch):
            lines = train(a.cosmati, a.fashion, "--epochs", 2, "--batch", batch)
            return max(line["images_per_second"] for line in lines if line["event"] == "epoch")

        def theirs(batch=batch):
            return json_lines([a.torch, f"{PEERS}/torch_lenet5.py", batch, THREADS, 20000])[-1]["images_per_second"]

        name = f"LeNet-5 modern, training, batch {batch}"
        if not a.torch:
            results.report(name, statistics.median(ours() for _ in range(5)), promised, "images/s")
            results.skip(name + ", against PyTorch", "no --torch PYTHON")
            continue
        mine, peer, ratio = alternate(ours, theirs)
        results.report(name, statistics.median(mine), promised, "images/s", samples=mine)
        results.report(name + ", against PyTorch", ratio, 3, "x", peer=torch_name(a.torch), ours=mine, peers=peer)


def gemm(a, results):
    for data_type, peer, promised in (("f32", "onednn", 0.97), ("f64", "openblas", 0.95)):
        for size in (256, 512, 1024, 2048, 4096):
            line = json_lines([a.cosmati, "bench", "gemm", "--size", f"{size}x{size}x{size}", "--type", data_type,
                               "--backend", "cpu", "--peer", peer, "--json"])[-1]
            results.report(f"GEMM {data_type} {size}, against {peer}", line["ratio"], promised, "x",
                           **{key: line[key] for key in line if key not in ("ratio", "commit", "digest", "machine")})


def start_up(a, results):
    results.report("start-up: cosmati info", seconds_of([a.cosmati, "info"]), 1.0, "s", at_least=False)
    with tempfile.TemporaryDirectory() as folder:
        image = f"{folder}/digit.bmp"
        make_picture(image)
        model = f"{folder}/m.safetensors"
        json_lines([a.cosmati, "train", "lenet5", "--data", a.fashion, "--json", "--epochs", 1, "--batch", 1024, "--save", model])
        seconds = seconds_of([a.cosmati, "predict", "lenet5", "--model", model, "--image", image])
        results.report("start-up: one image predicted", seconds, 1.0, "s", at_least=False)


def make_picture(path):
    """Writes a white square on black, 28x28, as a BMP."""
    rows = b"".join((b"\xff\xff\xff" if 8 <= x < 20 and 8 <= y < 20 else b"\0\0\0") for y in range(28) for x in range(28))
    header = b"BM" + (54 + len(rows)).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    fields = [(40, 4), (28, 4), (28, 4), (1, 2), (24, 2), (0, 4), (len(rows), 4), (0, 4), (0, 4), (0, 4), (0, 4)]
    with open(path, "wb") as file:
        file.write(header + b"".join(value.to_bytes(size, "little") for value, size in fields) + rows)


def dcgan(a, results):
    network, answer = f"{a.dcgan}/network.bin", f"{a.dcgan}/answer1.npy"
    if not os.path.exists(network):
        results.skip("DCGAN generator", f"{network} does not exist; pass --dcgan FOLDER")
        return
    import numpy
    with tempfile.TemporaryDirectory() as folder:
        def generate(*options):
            return json_lines([a.cosmati, "generate", "dcgan", "--weights", network, "--json", *options])[-1]

        generate("--input", f"{a.dcgan}/input1.txt", "--output", f"{folder}/o.npy")
        error = numpy.abs(numpy.load(f"{folder}/o.npy").astype(numpy.float64) - numpy.load(answer)).max()
        results.report("DCGAN, largest error against f64", float(error), 2e-5, "", at_least=False)
        writing = [generate("--input", f"{a.dcgan}/input3.txt", "--output", f"{folder}/o.txt")["writing_seconds"] for _ in range(3)]
        results.report("DCGAN, text of 1000 images written", statistics.median(writing), 0.5, "s", at_least=False, samples=writing)
        if not a.torch:
            results.skip("DCGAN, generating, against PyTorch", "no --torch PYTHON")
            return
        mine, peer, ratio = alternate(
            lambda: generate("--count", 640, "--output", f"{folder}/o.npy")["images_per_second"],
            lambda: json_lines([a.torch, f"{PEERS}/torch_dcgan.py", network, 64, THREADS])[-1]["images_per_second"], 3)
        results.report("DCGAN, generating, against PyTorch", ratio, 1.4, "x", peer=torch_name(a.torch), ours=mine, peers=peer)


def clone_to_accuracy(a, results):
    """Measures the time from `git clone` until `make run` reports the accuracy, with all packages already installed."""
    import time
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run(["git", "clone", "--quiet", ROOT, f"{folder}/cosmati"], check=True)
        subprocess.run(["make", "run", f"DATA={a.fashion}"], cwd=f"{folder}/cosmati", check=True, capture_output=True)
        results.report("git clone to accuracy", time.perf_counter() - start, 300, "s", at_least=False)


# The functions that measure, each with the set of its sources.
NETWORKS = "networks on the processor"
GROUPS = {"gemm": (gemm, "processor"), **gemm_figures.GROUPS, **convolution_figures.GROUPS, "speed": (training_speed, NETWORKS),
          "start": (start_up, "program"), "dcgan": (dcgan, NETWORKS), "accuracy": (training_accuracies, NETWORKS),
          "clone": (clone_to_accuracy, "program"), **gpu_figures.GROUPS}


def main():
    shared = os.path.join(os.path.dirname(ROOT), "shared", "data")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cosmati")
    parser.add_argument("--only", nargs="+", choices=sorted(GROUPS))
    parser.add_argument("--mnist", default=os.path.join(shared, "mnist"))
    parser.add_argument("--fashion", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--dcgan", default=os.path.join(shared, "dcgan"))
    parser.add_argument("--torch", default=os.environ.get("TORCH_PYTHON"))
    parser.add_argument("--out", default=os.path.join(ROOT, "bench", "results", "cpu", "figures.jsonl"))
    parser.add_argument("--gpu-out", default=os.path.join(ROOT, "bench", "results", "h200", "figures.jsonl"))
    parser.add_argument("--gpu-parts", nargs="+", choices=list(gpu_figures.PARTS))
    a = parser.parse_args()
    a.cosmati = os.path.abspath(a.cosmati)
    results = Results(a.out)
    for name, (measure, names) in GROUPS.items():
        if not a.only or name in a.only:
            results.begin(f"bench/figures.py build/release/bin/cosmati --only {name}" + (" --torch PYTHON" if a.torch else ""), names)
            measure(a, results)
    print(f"{results.count - len(results.short)} of {results.count} figures met; lines in {a.out}")
    sys.exit(1 if results.short else 0)


main()
