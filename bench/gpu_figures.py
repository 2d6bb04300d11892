"""Figures of the networks on one GPU, compared with PyTorch: training LeNet-5, its time to 99 % on MNIST, the DCGAN generator
and its training."""
import json
import os
import statistics
import subprocess
import tempfile
import time

from measure import ROOT, Results, alternate, json_lines

PEER = os.path.join(ROOT, "bench", "peers", "torch_gpu.py")
BATCHES = ((64, 8), (256, 5), (1024, 4), (4096, 3))
DRAWING = (("f32", 2.5, 2e-5), ("tf32", 2, 5e-3), ("f16", 2, 1e-2))
LEARNING = (("tf32", 1.5), ("bf16", 1.5))
SOURCES = "networks on a GPU"
RECIPE = ("--batch", 256, "--epochs", 3, "--learning-rate", 0.12)  # for 99 % on MNIST


def gpu_name(program):
    """Returns the name of the GPU that the program would use, or None."""
    lines = json_lines([program, "info", "--json"])
    return next((line["state"] for line in lines if (line["kind"], line["name"], line["here"]) == ("backend", "cuda", True)), None)


class Torch:
    """A PyTorch process that keeps its prepared models."""

    def __init__(self, python, names):
        self.process = subprocess.Popen([python, PEER, *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.about = json.loads(self.process.stdout.readline())
        self.ways = {}

    def best(self, name):
        """Returns images/s of the fastest mode."""
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{PEER} exited instead of measuring {name}")
        rates = json.loads(line)
        self.ways[name] = max(rates, key=rates.get)
        return rates[self.ways[name]]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def train(a, *options):
    with tempfile.TemporaryDirectory() as folder:
        return json_lines([a.cosmati, "train", "lenet5", "--backend", "cuda", "--data", a.mnist, "--json", "--save",
                           f"{folder}/m.safetensors", *options])


def compare(results, name, promised, ours, torch, theirs):
    """Measures ours and PyTorch's alternately; without PyTorch, only ours."""
    if torch is None:
        samples = [ours() for _ in range(3)]
        results.skip(f"{name}, against PyTorch", f"no --torch PYTHON; ours alone: {statistics.median(samples):.5g} images/s",
                     promised=promised, unit="x", at_least=True)
        return
    mine, peer, ratio = alternate(ours, lambda: torch.best(theirs), 3)
    results.report(f"{name}, against PyTorch", ratio, promised, "x", peer=f"PyTorch {torch.about['torch']} {torch.ways[theirs]}",
                   ours=mine, peers=peer)


def lenet5_speed(a, results, torch):
    for batch, promised in BATCHES:
        def ours(batch=batch):
            epochs = [line for line in train(a, "--epochs", 3, "--batch", batch, "--compute", "tf32") if line["event"] == "epoch"]
            return max(line["images_per_second"] for line in epochs)

        compare(results, f"LeNet-5 training on a GPU, tf32, batch {batch}", promised, ours, torch, f"lenet5-{batch}")


def mnist(a, results):
    """Reports for ten seeds the accuracy, the seconds of all epochs (with shuffling on the host; kernels and data already loaded) and
    those of the whole command, with its kernels in the cache and its data in the page cache."""
    accuracies, seconds, commands = {}, {}, {}
    train(a, *RECIPE)
    for seed in range(1, 11):
        start = time.perf_counter()
        lines = train(a, *RECIPE, "--seed", seed)
        commands[seed] = time.perf_counter() - start
        epochs = [line for line in lines if line["event"] == "epoch"]
        accuracies[seed] = 100 * lines[-1]["accuracy"]
        seconds[seed] = sum(60000 / line["images_per_second"] for line in epochs)
    words = " ".join(str(word) for word in RECIPE)
    results.report("MNIST on a GPU, test accuracy, mean of 10 seeds", statistics.mean(accuracies.values()), 99.0, "%",
                   seeds=accuracies, note=words)
    results.report("MNIST on a GPU, seconds of these trainings, mean", statistics.mean(seconds.values()), 0.5, "s", at_least=False,
                   samples=list(seconds.values()), note=words)
    results.report("MNIST on a GPU, seconds of the whole command, mean", statistics.mean(commands.values()), 0.5, "s", at_least=False,
                   samples=list(commands.values()), note=words)


def dcgan(a, results, torch):
    network = f"{a.dcgan}/network.bin"
    if not os.path.exists(network):
        results.skip("DCGAN on a GPU", f"{network} does not exist; pass --dcgan FOLDER")
        return
    import numpy
    generate = [a.cosmati, "generate", "dcgan", "--backend", "cuda", "--weights", network, "--json", "--type"]
    for data_type, promised, bound in DRAWING:
        words = [*generate, data_type]
        with tempfile.TemporaryDirectory() as folder:
            json_lines([*words, "--input", f"{a.dcgan}/input1.txt", "--output", f"{folder}/o.npy"])
            error = numpy.abs(numpy.load(f"{folder}/o.npy").astype(numpy.float64) - numpy.load(f"{a.dcgan}/answer1.npy")).max()
        results.report(f"DCGAN on a GPU, {data_type}, largest error", float(error), bound, "", at_least=False)

        def ours(words=tuple(words)):
            return json_lines([*words, "--count", 102400, "--batch", 1024, "--measure", "device", "--output-type",
                               "f16" if "f16" in words else "f32"])[-1]["images_per_second"]

        compare(results, f"DCGAN on a GPU, {data_type}, batch 1024", promised, ours, torch, f"dcgan-{data_type}-1024")

    def pictures(where):  # 12 KB each; at PCIe 5's 55 GB/s the bus would take 4.5 M/s, more than the device generates
        return json_lines([*generate, "f16", "--batch", 1024, "--count", 409600, "--output-type", "u8", "--measure",
                           where])[-1]["images_per_second"]

    mine, device, ratio = alternate(lambda: pictures("host"), lambda: pictures("device"), 3)
    results.report("DCGAN on a GPU, f16, 8-bit images in host memory, relative to the device's rate", ratio, 0.9, "x",
                   note=f"images/s to host memory {statistics.median(mine):,.0f}, on the device {statistics.median(device):,.0f}")


def dcgan_training(a, results, torch):
    for data_type, promised in LEARNING:
        def ours(data_type=data_type):
            with tempfile.TemporaryDirectory() as folder:
                lines = json_lines([a.cosmati, "train", "dcgan", "--backend", "cuda", "--data", a.mnist, "--json", "--batch", 256,
                                    "--steps", 120, "--report", 20, "--type", data_type, "--save", f"{folder}/m.safetensors"])
            return max(line["images_per_second"] for line in lines if line["event"] == "progress")

        compare(results, f"DCGAN training on a GPU, {data_type}, batch 256", promised, ours, torch, f"gan-{data_type}-256")


COUNTS = {"lenet5": len(BATCHES), "mnist": 3, "dcgan": 2 * len(DRAWING) + 1, "gan": len(LEARNING)}  # figures
PARTS = {"lenet5": lenet5_speed, "mnist": mnist, "dcgan": dcgan, "gan": dcgan_training}


def gpu(a, results):
    """Measures all figures, or those of --gpu-parts, and writes their lines to the file of that GPU."""
    name = gpu_name(a.cosmati)
    if name is None:
        results.skip("networks on a GPU", "there is none here")
        return
    own = Results(a.gpu_out, name)
    chosen = a.gpu_parts or list(PARTS)
    names = [f"lenet5-{batch}" for batch, _ in BATCHES if "lenet5" in chosen]
    names += [f"dcgan-{data_type}-1024" for data_type, _, _ in DRAWING if "dcgan" in chosen]
    names += [f"gan-{data_type}-256" for data_type, _ in LEARNING if "gan" in chosen]
    torch = Torch(a.torch, names) if a.torch and names else None
    if torch is not None and torch.about["failures"]:
        print(f"PyTorch: {torch.about['failures']}")
    for part in chosen:
        own.begin(f"{results.base['command']} --gpu-parts {part}", SOURCES)
        PARTS[part](a, own) if part == "mnist" else PARTS[part](a, own, torch)
    if torch is not None:
        torch.close()
    results.count += own.count
    results.short += own.short


GROUPS = {"networks": (gpu, SOURCES)}
