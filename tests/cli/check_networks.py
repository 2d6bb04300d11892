#!/usr/bin/python3
"""train, predict and generate on the command line: files byte for byte, resuming, Ctrl-C, rejected requests.

usage: check_networks.py COSMATI [--dcgan FOLDER] [--slow]
FOLDER: the report's network and inputs, if available; --slow: COSMATI was built with sanitizers
"""
import argparse
import gzip
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
import zlib

import numpy as np

failures = []
checks = 0


def expect(what, condition, detail=""):
    global checks
    checks += 1
    if not condition:
        failures.append(what)
        print(f"FAIL {what} {str(detail)[:600]}")


def run(*words, status=0):
    result = subprocess.run([COSMATI, *map(str, words)], capture_output=True, text=True, timeout=300)
    expect(f"exit status of {' '.join(map(str, words[:4]))}", result.returncode == status,
           f"{result.returncode}, expected {status}: {result.stderr}")
    return result


def refused(*words, saying):
    """Expects exit status 2 and one sentence on stderr that contains `saying`."""
    result = run(*words, status=2)
    expect(f"sentence of {' '.join(map(str, words[:4]))}", saying in result.stderr and result.stderr.count("\n") == 1,
           result.stderr)


def write_idx(path, array, compress=False):
    data = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    with open(path, "wb") as file:
        file.write(gzip.compress(data) if compress else data)


def make_dataset(folder, train=600, test=200):
    """Returns images of bright squares whose position encodes the label."""
    rng = np.random.default_rng(1)
    os.makedirs(folder, exist_ok=True)
    for prefix, count in (("train", train), ("t10k", test)):
        labels = rng.integers(0, 10, count).astype(np.uint8)
        images = rng.integers(0, 60, (count, 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels):
            row, column = 5 * (label // 5) + 6, 5 * (label % 5)
            image[row:row + 5, column:column + 5] += 180
        write_idx(f"{folder}/{prefix}-images-idx3-ubyte.gz", images, True)
        write_idx(f"{folder}/{prefix}-labels-idx1-ubyte", labels)
    return images, labels


def read(path):
    with open(path, "rb") as file:
        return file.read()


def check_lenet5(folder):
    images, labels = make_dataset(f"{folder}/data")
    data, model = f"{folder}/data", f"{folder}/m.safetensors"
    picture = f"{folder}/p.png"
    base = ["train", "lenet5", "--data", data, "--epochs", 6, "--batch", 32, "--threads", 2]
    text = run(*base, "--save", model, "--picture", picture).stdout
    expect("a line for each epoch", text.count("images/s") == 6, text)
    expect("the confusion matrix", "correct" in text and "test accuracy" in text, text)
    expect("paths of the files", model in text and picture in text, text)
    expect("the picture is a PNG", read(picture)[:8] == b"\x89PNG\r\n\x1a\n")
    lines = [json.loads(line) for line in run(*base, "--save", f"{folder}/n.safetensors", "--json").stdout.splitlines()]
    expect("the same seed gives the same file", read(model) == read(f"{folder}/n.safetensors"))
    expect("accuracy above 0.9", lines[-1]["accuracy"] > 0.9, lines[-1])
    accuracy = json.loads(run("predict", "lenet5", "--model", model, "--data", data, "--json").stdout.splitlines()[-1])
    expect("predict agrees with train", accuracy["accuracy"] == lines[-1]["accuracy"], accuracy)
    for backend in ("cpu", "reference"):
        small = json.loads(run("predict", "lenet5", "--model", model, "--json", "--backend", backend,
                               "--image", make_bmp(f"{folder}/i.bmp", images[0])).stdout)
        expect(f"one image on {backend}", small["class"] == labels[0], small)
    large = np.kron(255 - images[1], np.ones((5, 5), np.uint8))  # dark on light, five times as large
    answer = json.loads(run("predict", "lenet5", "--model", model, "--json",
                            "--image", make_bmp(f"{folder}/l.bmp", large)).stdout)
    expect("a large picture, inverted", answer["class"] == labels[1], answer)
    both = run("predict", "lenet5", "--model", model, "--json", "--image", f"{folder}/i.bmp", f"{folder}/l.bmp").stdout
    expect("two files after one --image", [json.loads(line)["class"] for line in both.splitlines()] == list(labels[:2]), both)

    check_interrupt(folder, data)
    refused("train", "lenet5", "--data", f"{folder}/nowhere", saying="nowhere")
    refused("train", "lenet5", "--data", data, "--epochs", 0, saying="--epochs 0")
    refused("train", "lenet5", "--data", data, "--variant", "lenet6", saying="lenet6")
    refused("train", "lenet5", "--data", data, "--resume", model, "--epochs", 9, saying="--resume")
    refused("predict", "lenet5", "--model", f"{folder}/data/t10k-labels-idx1-ubyte", "--data", data, saying="t10k-labels")
    cut = f"{folder}/cut.safetensors"
    with open(cut, "wb") as file:
        file.write(read(model)[:-5])
    refused("predict", "lenet5", "--model", cut, "--data", data, saying="cut.safetensors")
    run("train", "lenet5", "--data", data, "--gpus", 1, status=3)
    half = f"{folder}/half.safetensors"
    line = json.loads(run("train", "lenet5", "--data", data, "--epochs", 1, "--batch", 32, "--type", "bf16", "--backend", "cpu",
                          "--save", half, "--json").stdout.splitlines()[0])
    answer = json.loads(run("predict", "lenet5", "--model", half, "--data", data, "--json").stdout.splitlines()[-1])
    expect("a model trained in bf16 predicts in f32", abs(answer["accuracy"] - line["test_accuracy"]) < 0.03, (line, answer))
    told = run("train", "lenet5", "--data", data, "--epochs", 1, "--batch", 64, "--compute", "tf32", "--backend", "cpu", "--save", half).stderr
    expect("a warning about tf32 on the CPU", told.count("\n") == 1 and "warning: tf32 has no effect" in told and "cpu" in told, told)
    refused("train", "lenet5", "--data", data, "--type", "s8", saying="f32, f16 or bf16")
    refused("train", "lenet5", "--data", data, "--type", "f16", "--compute", "tf32", saying="requires --type f32")
    refused("train", "lenet5", "--data", data, "--resume", half, "--type", "f32", saying="--type")
    refused("train", "lenet5", "--data", data, "--gpus", 99, saying="--gpus 99")
    refused("train", "lenet5", "--data", data, "--gpus", 4, "--backend", "cpu", "--batch", 2, saying="at least one for each")
    check_lenet5_refusals(folder, data, model)


def check_lenet5_refusals(folder, data, model):
    train = ["train", "lenet5", "--data", data]
    for option in ("--epochs", "--batch", "--learning-rate", "--momentum", "--weight-decay"):
        refused(*train, option, -1, saying=f"{option} -1 is out of range")
    for option, name in (("--save", "none/m.safetensors"), ("--save", "data"), ("--picture", "none/p.png")):
        refused(*train, option, f"{folder}/{name}", saying=f"{option} {folder}/{name}: ")
    refused(*train, "--picture", f"{folder}/p.jpg", saying="p.jpg: the name must end in .png")
    refused(*train, "--resume", model, "--seed", 9, saying="--seed 9: --resume continues with the seed of")
    refused(*train, "--seed", 2**62 + 1, saying="expected 0 to 4611686018427387904")
    kept = f"{folder}/kept.safetensors"
    with open(kept, "wb") as file:
        file.write(read(model))
    refused(*train, "--epochs", 2, "--batch", 32, "--learning-rate", 1000, "--save", kept, saying="no longer finite")
    expect("a diverging training keeps the existing file", read(kept) == read(model))
    broken = f"{folder}/broken.safetensors"
    poison(model, broken, "c1.weight")
    refused("predict", "lenet5", "--model", broken, "--data", data, saying="element 0 of tensor c1.weight is nan")
    poison(model, broken, "optimizer.0.f6.weight")
    refused(*train, "--resume", broken, saying="element 0 of tensor optimizer.0.f6.weight is nan")


def poison(source, target, tensor):
    """Writes a copy of a safetensors file whose `tensor` begins with NaN."""
    data = bytearray(read(source))
    header = struct.unpack("<Q", data[:8])[0]
    at = 8 + header + json.loads(data[8:8 + header])[tensor]["data_offsets"][0]
    data[at:at + 4] = struct.pack("<f", float("nan"))
    with open(target, "wb") as file:
        file.write(data)


def check_interrupt(folder, data):
    """Interrupts a training with Ctrl-C; --resume then gives the file of an uninterrupted training."""
    if arguments.slow:  # a quarter of the images, which sanitizers make up for
        data = f"{folder}/few"
        make_dataset(data, 150, 50)
    whole, parts = f"{folder}/whole.safetensors", f"{folder}/parts.safetensors"
    long = ["train", "lenet5", "--data", data, "--epochs", "60", "--batch", "32", "--threads", "2"]
    run(*long, "--save", whole)
    process = subprocess.Popen([COSMATI, *long, "--save", parts], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()  # what is trained
    process.stdout.readline()  # the first epoch
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=120)[1]
    expect("Ctrl-C: exit status", process.returncode == 130, process.returncode)
    expect("Ctrl-C says how to resume", f"--resume {parts}" in error, error)
    run("train", "lenet5", "--data", data, "--resume", parts, "--threads", 2)
    expect("resuming gives the same bits", read(whole) == read(parts))


def make_bmp(path, gray):
    height, width = gray.shape
    rows = b"".join(np.repeat(row, 3).tobytes() + bytes(-3 * width % 4) for row in gray[::-1])
    with open(path, "wb") as file:
        file.write(bmp_header(width, height, len(rows)) + rows)
    return path


def bmp_header(width, height, size):
    return b"BM" + struct.pack("<IIIIiiHHIIIIII", 54 + size, 0, 54, 40, width, height, 1, 24, 0, size, 0, 0, 0, 0)


def random_network(path):
    rng = np.random.default_rng(3)
    channels = [512, 256, 128, 64, 3]

    def batch_norm(count):
        return [rng.uniform(low, high, count) for low, high in ((-.5, .5), (.5, 1.5), (-.5, .5), (.5, 1.5))]

    parts = [rng.normal(0, .15, (100, 8192)), rng.normal(0, .1, 8192), *batch_norm(512)]
    for i in range(1, 5):
        parts += [rng.normal(0, 1.2 / np.sqrt(6 * channels[i - 1]), (5, 5, channels[i], channels[i - 1])),
                  rng.normal(0, .1, channels[i])]
        if i < 4:
            parts += batch_norm(channels[i])
    values = np.concatenate([p.ravel() for p in parts]).astype("<f4")
    values.tofile(path)
    return values


def generate(values, z):
    """Computes the report's network in f64 by gathering over the taps that meet an input."""
    channels, at = [512, 256, 128, 64, 3], 0
    values = values.astype(np.float64)

    def take(*shape):
        nonlocal at
        at += int(np.prod(shape))
        return values[at - int(np.prod(shape)):at].reshape(shape)

    def batch_norm(x, count):
        beta, gamma, mean, variance = (take(count) for _ in range(4))
        return np.maximum((x - mean) / np.sqrt(variance + 1e-5) * gamma + beta, 0)

    w = take(100, 8192)
    x = batch_norm((z @ w + take(8192)).reshape(-1, 4, 4, 512), 512)
    for i in range(1, 5):
        n, size, outputs = len(x), x.shape[1], channels[i]
        w, bias = take(5, 5, outputs, channels[i - 1]), take(outputs)
        y = np.zeros((n, 2 * size + 3, 2 * size + 3, outputs))
        for r in range(5):
            for s in range(5):
                y[:, r:r + 2 * size:2, s:s + 2 * size:2] += x @ w[r, s].T
        y = y[:, 1:1 + 2 * size, 1:1 + 2 * size] + bias
        x = batch_norm(y, outputs) if i < 4 else np.tanh(y)
    return x


def text_of(images):
    lines = ["".join("%.4f " % v for v in image.ravel()) for image in images.astype(np.float64)]
    return (f"{len(images)}\n" + "".join(line + "\n" for line in lines)).encode()


def bmp_of(images):
    side = int(np.ceil(np.sqrt(len(images))))
    grid = np.zeros((side * 64, side * 64, 3), np.uint8)
    scaled = ((images.astype(np.float32) + np.float32(1)) / np.float32(2) * np.float32(255)).astype(np.int32).astype(np.uint8)
    for i, image in enumerate(scaled):
        grid[i // side * 64:i // side * 64 + 64, i % side * 64:i % side * 64 + 64] = image
    pixels = grid[::-1, :, ::-1].tobytes()
    return bmp_header(side * 64, side * 64, len(pixels)) + pixels


def check_dcgan(folder, report):
    network = f"{folder}/network.bin"
    values = random_network(network)
    z = np.random.default_rng(4).uniform(-1, 1, (3, 100)).round(6)
    with open(f"{folder}/z.txt", "w", newline="") as file:  # CRLF, no newline at the end
        file.write("3\r\n" + "\r\n".join(" ".join(f"{v:.6f}" for v in row) for row in z))
    out = {e: f"{folder}/o.{e}" for e in ("txt", "npy", "bmp", "png", "safetensors")}
    base = ["generate", "dcgan", "--weights", network]
    run(*base, "--input", f"{folder}/z.txt", "--output", out["npy"], "--image", out["bmp"])
    images = np.load(out["npy"])
    error = np.abs(images - generate(values, z)).max()
    expect("dcgan against numpy", images.shape == (3, 64, 64, 3) and error <= 2e-5, error)
    expect("dcgan: BMP", read(out["bmp"]) == bmp_of(images))
    run(*base, "--input", f"{folder}/z.txt", "--output", out["txt"], "--image", out["png"], "--save-weights", out["safetensors"])
    expect("dcgan: text", read(out["txt"]) == text_of(images))
    expect("dcgan: PNG", read(out["png"])[:4] == b"\x89PNG")
    np.save(f"{folder}/z.npy", z)
    run("generate", "dcgan", "--weights", out["safetensors"], "--input", f"{folder}/z.npy", "--output", f"{folder}/s.npy")
    expect("dcgan: safetensors weights, npy input", np.abs(np.load(f"{folder}/s.npy") - images).max() < 1e-6)
    run(*base, "--count", 2, "--seed", 5, "--output", f"{folder}/a.txt")
    run(*base, "--count", 2, "--seed", 5, "--output", f"{folder}/b.txt")
    expect("dcgan: the same seed", read(f"{folder}/a.txt") == read(f"{folder}/b.txt"))
    check_walk(folder, base, z)
    check_timeline(folder, base)
    check_dcgan_refusals(folder, network, values)
    if report and os.path.exists(f"{report}/network.bin"):
        run("generate", "dcgan", "--weights", f"{report}/network.bin", "--input", f"{report}/input1.txt", "--output", out["npy"])
        error = np.abs(np.load(out["npy"]) - np.load(f"{report}/answer1.npy")).max()
        expect("dcgan: the report's images within 2e-5", error <= 2e-5, error)
    else:
        print("not run: the report's network is not here")


def unfiltered(data, height, width):
    """Decodes the rows of a PNG, whose filters predict a byte from those on its left and above; returns (height, width, 3)."""
    data, rows, above = zlib.decompress(data), [], np.zeros(3 * width, np.uint8)
    for y in range(height):
        kind, row = data[y * (3 * width + 1)], bytearray(data[y * (3 * width + 1) + 1:(y + 1) * (3 * width + 1)])
        for x in range(3 * width):
            a, b, c = row[x - 3] if x >= 3 else 0, int(above[x]), int(above[x - 3]) if x >= 3 else 0
            nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            row[x] = row[x] + (0, a, b, (a + b) // 2, nearest)[kind] & 255
        above = np.frombuffer(bytes(row), np.uint8)
        rows.append(above)
    return np.stack(rows).reshape(height, width, 3)


def animation(path):
    """Returns the frames of an animated PNG and its frame rate; raises if a checksum, an order or a size is wrong."""
    data, at, chunks = read(path), 8, []
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(data):
        length = struct.unpack(">I", data[at:at + 4])[0]
        name, body = data[at + 4:at + 8], data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(name + body), name
        chunks.append((name, body))
        at += 12 + length
    names = [name for name, _ in chunks]
    assert names[:4] == [b"IHDR", b"acTL", b"fcTL", b"IDAT"] and names[-1] == b"IEND", names
    width, height, depth, color = struct.unpack(">IIBB", chunks[0][1][:10])
    assert (depth, color) == (8, 2)
    count, plays = struct.unpack(">II", chunks[1][1])
    frames, sequence, rates = [], 0, set()
    for name, body in chunks[2:-1]:
        if name != b"IDAT":
            assert struct.unpack(">I", body[:4])[0] == sequence, (name, sequence)
            sequence += 1
        if name == b"fcTL":
            assert struct.unpack(">IIII", body[4:20]) == (width, height, 0, 0)
            rates.add(struct.unpack(">HH", body[20:24]))
        else:
            frames.append(unfiltered(body[4 * (name == b"fdAT"):], height, width))
    assert len(frames) == count and plays == 0 and len(rates) == 1
    one, rate = rates.pop()
    return frames, rate / one


def check_walk(folder, base, z):
    """Checks the frames of a closed walk, in a strip and in an animation; it passes through the stops."""
    strip, moving, plain = f"{folder}/strip.bmp", f"{folder}/walk.png", f"{folder}/walk.npy"
    run(*base, "--input", f"{folder}/z.txt", "--walk", 6, "--image", strip, "--animation", moving, "--output", plain,
        "--frames-per-second", 12)
    images = np.load(plain)
    levels = ((images + np.float32(1)) / np.float32(2) * np.float32(255)).astype(np.int32).astype(np.uint8)
    row = np.concatenate(list(levels), axis=1)
    expect("walk: a row of frames", read(strip) == bmp_header(384, 64, row.size) + row[::-1, :, ::-1].tobytes())
    try:
        frames, rate = animation(moving)
        expect("walk: the frames of the animation", len(frames) == 6 and rate == 12 and np.array_equal(frames, levels))
    except Exception as error:  # raised by the reader if the file is damaged
        expect("walk: an animated PNG", False, repr(error))
    run(*base, "--input", f"{folder}/z.txt", "--output", f"{folder}/stops.npy")
    stops = np.load(f"{folder}/stops.npy")
    expect("walk: every second frame is a stop", np.abs(images[::2] - stops).max() < 1e-5)
    a, b = z[2], z[0]  # the midpoint of the way back
    angle = np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    np.save(f"{folder}/between.npy", ((a + b) * np.sin(angle / 2) / np.sin(angle))[None])
    run(*base, "--input", f"{folder}/between.npy", "--output", f"{folder}/half.npy")
    expect("walk: on the arc between two stops", np.abs(images[5] - np.load(f"{folder}/half.npy")[0]).max() < 1e-5)
    run(*base, "--walk", 4, "--walk-stops", 2, "--seed", 5, "--output", f"{folder}/random.npy")
    run(*base, "--count", 2, "--seed", 5, "--output", f"{folder}/two.npy")
    expect("walk: random stops are the vectors of --count", np.abs(np.load(f"{folder}/random.npy")[::2] - np.load(f"{folder}/two.npy")).max() < 1e-5)
    for words, saying in ((["--walk", 1], "--walk 1"), (["--walk", 300], "at most 256"), (["--walk", 8, "--count", 3], "--count"),
                          (["--walk", 8, "--walk-stops", 9], "--walk-stops 9"), (["--count", 3, "--walk-stops", 3], "--walk-stops"),
                          (["--count", 3, "--frames-per-second", 3], "--animation"),
                          (["--count", 3, "--animation", f"{folder}/a.gif"], ".apng"),
                          (["--count", 3, "--animation", f"{folder}/x.png"], "different files")):
        refused(*base, *words, "--image", f"{folder}/x.png", saying=saying)


def check_timeline(folder, base):
    """Checks the lanes of a timeline: each chunk once, in order, computed after its upload, written after its download."""
    trace, picture = f"{folder}/t.json", f"{folder}/t.svg"
    words = [*base, "--count", 5, "--batch", 2, "--output", f"{folder}/x.txt", "--timeline"]
    run(*words, trace)
    with open(trace, encoding="ascii") as file:
        events = json.load(file)["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    expect("timeline: lanes", sorted(lanes.values()) == ["compute", "download", "files", "upload"], lanes)
    when = {(lanes[e["tid"]], e["args"]["chunk"]): (e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"}
    order = [when[lane, chunk] for chunk in range(3) for lane in ("upload", "compute", "download", "files")
             if (lane, chunk) in when]
    expect("timeline: every span of every chunk", len(order) == 12 == len(when), when)
    expect("timeline: spans in order",
           all(a[0] <= a[1] <= b[0] + 1e-3 for i, (a, b) in enumerate(zip(order, order[1:])) if i % 4 < 3), order)
    run(*words, picture)
    bars = [e for e in xml.etree.ElementTree.parse(picture).iter() if e.get("class") in lanes.values()]
    expect("timeline: a bar for each", len(bars) == 12, len(bars))
    refused(*words, f"{folder}/t.png", saying=".svg or .json")


def check_shipped_generator(folder):
    """generate uses the generator shipped with the program by default; without it, it prints one sentence."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    draw = ["generate", "dcgan", "--count", 4, "--image", f"{folder}/shipped.png"]
    if os.path.exists(f"{root}/share/cosmati/dcgan-fashion.safetensors"):
        run(*draw)
        expect("the shipped generator draws", read(f"{folder}/shipped.png")[:4] == b"\x89PNG")
    else:
        refused(*draw, saying="share/cosmati/dcgan-fashion.safetensors was not found in")


def check_make_help():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    text = subprocess.run(["make", "-s", "-C", root, "help"], capture_output=True, text=True, timeout=60).stdout
    expect("make help names every target", all(f"{name}:" in text for name in ("run", "run_parallel", "test")), text)


def check_dcgan_refusals(folder, network, values):
    bad, text = f"{folder}/bad.bin", f"{folder}/bad.txt"

    def weights(data, saying):
        with open(bad, "wb") as file:
            file.write(data)
        refused("generate", "dcgan", "--weights", bad, "--count", 1, "--output", f"{folder}/x.txt", saying=saying)

    weights(read(network)[:-4], "bytes long")
    weights(read(network) + b"\0", "bytes long")
    weights(b"", "bad.bin")
    values[5] = np.nan
    weights(values.tobytes(), "element 5 of proj_w is nan")

    def latents(content, saying):
        with open(text, "w", encoding="ascii") as file:
            file.write(content)
        refused("generate", "dcgan", "--weights", network, "--input", text, "--output", f"{folder}/x.txt", saying=saying)

    latents("1\n" + "0.5 " * 99, "99 numbers")
    latents("2\n" + "0.5 " * 150, "150 numbers")
    latents("1\n" + "0.5 " * 50 + "abc " + "0.5 " * 49, "'abc' is not a finite number")
    latents("1\n" + "inf " * 100, "'inf'")
    latents("", "empty")
    latents("1\n" + "1e400 " * 100, "'1e400' is not a finite number")
    drawn = []
    for first in ("0", "1e-400"):
        with open(text, "w", encoding="ascii") as file:
            file.write(f"1\n{first} " + "0.5 " * 99)
        run("generate", "dcgan", "--weights", network, "--input", text, "--output", f"{folder}/x.txt")
        drawn.append(read(f"{folder}/x.txt"))
    expect("a number too small for a double is 0", drawn[0] == drawn[1])

    base, one = ["generate", "dcgan", "--weights", network], ["--count", 1, "--output", f"{folder}/x.npy"]
    for words in (["--save-weights", f"{folder}/x.npy"], ["--save-weights", f"{folder}/./x.npy"],
                  ["--image", f"{folder}/x.png", "--animation", f"{folder}/x.png"],
                  ["--image", f"{folder}/x.png", "--save-weights", f"{folder}/x.png"],
                  ["--timeline", f"{folder}/x.json", "--save-weights", f"{folder}/x.json"]):
        refused(*base, *one, *words, saying="they must be different files")
    refused(*base, *one, "--batch", -1, saying="--batch -1 is out of range")
    refused(*base, *one, "--animation", f"{folder}/x.png", "--frames-per-second", -1, saying="--frames-per-second -1 is out of range")
    for words in (["--count", -1], ["--walk", -1], ["--walk", 4, "--walk-stops", -1]):
        refused(*base, *words, *one[2:], saying=f"{words[-2]} -1 is out of range")
    for option in ("--compute", "--accumulator", "--a-type", "--b-type", "--c-type", "--d-type"):
        refused(*base, *one, option, "tf32", saying=f"generate dcgan: unknown option {option}; --type selects its data type" if option == "--compute" else f"generate dcgan: unknown option {option}; it applies to run,")
    for backend, method in (("cpu", "naive"), ("reference", "auto,auto,auto,naive")):
        error = run(*base, *one, "--backend", backend, "--method", method, status=3).stderr
        expect(f"--method {method} on {backend}", f"--method {method}: naive" in error and error.count("\n") == 1, error)


parser = argparse.ArgumentParser()
parser.add_argument("cosmati")
parser.add_argument("--dcgan")
parser.add_argument("--slow", action="store_true")
arguments = parser.parse_args()
COSMATI = os.path.abspath(arguments.cosmati)
started = time.time()
with tempfile.TemporaryDirectory() as temporary:
    check_lenet5(temporary)
    check_dcgan(temporary, arguments.dcgan)
    check_shipped_generator(temporary)
    check_make_help()
print(f"{checks - len(failures)} passed, {len(failures)} failed in {time.time() - started:.0f} s")
sys.exit(1 if failures else 0)
