#!/usr/bin/python3
"""train dcgan on the command line: its files, resuming, Ctrl-C, rejected requests; generate uses what it saved.

usage: check_dcgan_training.py COSMATI
"""
import gzip
import json
import os
import signal
import struct
import subprocess
import sys
import time

import numpy as np

from program import Program

MASK = (1 << 64) - 1


def read(path):
    with open(path, "rb") as file:
        return file.read()


def refused(*words, saying):
    """Expects exit status 2 and one sentence on stderr that contains `saying`."""
    error = program.call(*words, expect=2).stderr
    program.check(saying in error and error.count("\n") == 1, f"{words}: {saying!r} is not in {error!r}")


def make_pictures(count=600):
    """Bright squares on dark noise, as an IDX file."""
    rng = np.random.default_rng(1)
    images = rng.integers(0, 60, (count, 28, 28)).astype(np.uint8)
    for image, place in zip(images, rng.integers(0, 10, count)):
        row, column = 5 * (place // 5) + 6, 5 * (place % 5)
        image[row:row + 5, column:column + 5] += 180
    path = program.file("train-images-idx3-ubyte.gz")
    with open(path, "wb") as file:
        file.write(gzip.compress(struct.pack(">HBB3I", 0, 8, 3, *images.shape) + images.tobytes()))
    return path


def grids_of(name):
    """Returns the grids that --samples NAME.png wrote, by step."""
    folder = program.folder.name
    return {int(file[len(name) + 1:-4]): read(f"{folder}/{file}") for file in os.listdir(folder)
            if file.startswith(f"{name}-") and file.endswith(".png")}


def check_files(data, base):
    """Expects the same bits and grids whether or not the training is interrupted."""
    whole, parts = program.file("whole.safetensors"), program.file("parts.safetensors")
    output = program.call(*base, "--steps", 7, "--report", 3, "--save", whole, "--samples", program.file("s.png"),
                          "--generator", program.file("f16.safetensors"), "--json").stdout
    lines = [json.loads(line) for line in output.splitlines()]
    program.check([line.get("step") for line in lines] == [3, 6, 7, None], f"a line every three steps, and the last: {lines}")
    losses = [line[loss] for line in lines[:3] for loss in ("discriminator_loss", "generator_loss")]
    program.check(all(0 < loss < 5 for loss in losses), f"both losses: {losses}")
    grids = grids_of("s")
    program.check(sorted(grids) == [1, 2, 4, 6, 7], f"grids after 1, 2, 4 steps, the first pass and the last step: {sorted(grids)}")
    program.check(all(grid[:4] == b"\x89PNG" for grid in grids.values()) and grids[6] != grids[7], "PNGs, and a step changes them")

    told = program.call(*base, "--steps", 4, "--save", parts, "--type", "tf32", "--backend", "cpu").stderr
    program.check("warning: tf32 has no effect" in told and "cpu" in told, f"tf32 on the processor is reported: {told}")
    program.call(*base, "--steps", 4, "--save", parts)
    program.call("train", "dcgan", "--data", data, "--resume", parts, "--steps", 7, "--threads", 2, "--samples", program.file("r.png"))
    program.check(read(whole) == read(parts), "resuming gives the same bits")
    resumed = grids_of("r")
    program.check(resumed == {step: grids[step] for step in (6, 7)}, f"resuming draws the same grids: {sorted(resumed)}")
    program.call(*base, "--steps", 7, "--save", parts, "--samples", program.file("e.png"), "--sample-every", 3)
    every = grids_of("e")
    program.check(sorted(every) == [3, 6, 7] and all(every[step] == grids[step] for step in (6, 7)), f"--sample-every 3: {sorted(every)}")
    return whole, parts


def check_interrupt(base, parts):
    process = subprocess.Popen([program.path, *map(str, base), "--steps", "100000", "--report", "1", "--save", parts,
                                "--samples", program.file("c.png"), "--sample-every", "5000"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()  # what is trained
    process.stdout.readline()  # the first step
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=120)[1]
    program.check(process.returncode == 130 and f"--resume {parts}" in error and "--sample-every 5000" in error,
                  f"Ctrl-C: {process.returncode} {error}")


def check_refusals(data, base, whole, parts):
    refused("train", "dcgan", saying="--data")
    refused("train", "dcgan", "--data", program.file("nowhere"), saying="nowhere")
    refused(*base[:4], "--type", "f16", "--batch", 4, "--width", 1, saying="f32, tf32 or bf16")
    refused(*base[:4], "--batch", 601, "--width", 1, saying="holds 600 pictures")
    refused(*base, "--resume", parts, saying="--resume")
    refused(*base, "--statistics", "share", saying="--statistics")
    refused(*base, "--sample-every", 3, saying="--samples FILE.png")
    refused(*base, "--samples", program.file("s.png"), "--sample-every", 0, saying="--sample-every 0 is out of range")
    for option in ("--steps", "--batch", "--width", "--learning-rate"):
        refused(*base[:4], option, -1, saying=f"{option} -1 is out of range")
    for option, name, said in (("--save", "none/m.safetensors", "none/m.safetensors"), ("--generator", "", ""),
                               ("--samples", "none/s.png", "none/s-000001.png")):
        refused(*base, option, program.file(name), saying=f"{option} {program.file(said)}: ")
    refused("train", "dcgan", "--data", data, "--resume", whole, "--steps", 8, "--threads", 2, "--seed", 9,
            saying="--seed 9: --resume continues with the seed of")
    refused("train", "dcgan", "--data", data, "--resume", program.file("f16.safetensors"), saying="dcgan-generator")


def check_generator(weights):
    """With the checkpoint of --width 2 and with the exported f16 generator, generate reproduces the training's last grid."""
    grid = program.file("grid.png")
    program.call("generate", "dcgan", "--weights", weights, "--count", 64, "--seed", 1, "--backend", "cpu", "--image", grid)
    different = sum(a != b for a, b in zip(read(grid), grids_of("s")[7]))
    program.check(len(read(grid)) == len(grids_of("s")[7]) and different < 100, f"the grid of the training: {different} bytes differ")
    truth, npy = images_of(weights, 2), program.file("narrow.npy")
    for file, exact in ((weights, True), (program.file("f16.safetensors"), False)):
        for options, bound in (((), 2e-5), (("--type", "bf16"), 1e-2), (("--backend", "emulator"), 2e-5)):
            program.call("generate", "dcgan", "--weights", file, "--count", 2, "--seed", 1, "--output", npy, *options)
            error = np.abs(np.load(npy).astype(np.float64) - truth).max()
            program.check(error <= bound + (0 if exact else 1e-2), f"{os.path.basename(file)} {options}: off by {error}")
    lines = program.call("generate", "dcgan", "--weights", weights, "--explain", "--json").stdout.splitlines()
    shapes = [json.loads(line)["images"] for line in lines]
    program.check(shapes[:2] == ["64x100 -> 64x4x4x16", "64x4x4x16 -> 64x8x8x8"], f"explain has the channels of --weights: {shapes}")


def images_of(path, count):
    """Computes in float64 the first images of seed 1 by a generator in a safetensors file."""
    data = read(path)
    size = int.from_bytes(data[:8], "little")
    header, data = json.loads(data[8:8 + size]), data[8 + size:]
    w = {name: np.frombuffer(data[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"]).astype(np.float64)
         for name, entry in header.items() if name != "__metadata__"}
    state, z = split_mix(1 + 0x9e3779b97f4a7c15), []  # nets/random.h, seed 1 and purpose 0
    for _ in range(count * 100):
        state = (state + 0x9e3779b97f4a7c15) & MASK
        z.append(-1 + 2 * (split_mix(state) >> 11) * 2.0 ** -53)
    x = np.array(z, np.float32).astype(np.float64).reshape(count, 100) @ w["proj_w"] + w["proj_b"]
    x = x.reshape(count, 4, 4, -1)
    for i in range(1, 5):
        beta, gamma, mean, variance = (w[f"bn{i - 1}_{part}"] for part in ("beta", "gamma", "mean", "var"))
        x = np.maximum(gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta, 0)
        n, h = x.shape[:2]
        y = np.zeros((n, 2 * h + 4, 2 * h + 4, w[f"tconv{i}_w"].shape[2]))
        for r in range(5):
            for s in range(5):
                y[:, r:r + 2 * h:2, s:s + 2 * h:2] += x @ w[f"tconv{i}_w"][r, s].T
        x = y[:, 1:1 + 2 * h, 1:1 + 2 * h] + w[f"tconv{i}_b"]
    return np.tanh(x)


def split_mix(z):
    z &= MASK
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


program = Program(os.path.abspath(sys.argv[1]), "cpu")
started = time.time()
pictures = make_pictures()
words = ["train", "dcgan", "--data", pictures, "--width", 2, "--batch", 100, "--threads", 2, "--learning-rate", 0.02]
saved, other = check_files(pictures, words)
check_generator(saved)
check_interrupt(words, other)
check_refusals(pictures, words, saved, other)
print(f"{program.checks - len(program.failures)} passed, {len(program.failures)} failed in {time.time() - started:.0f} s")
sys.exit(1 if program.failures else 0)
