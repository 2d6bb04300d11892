"""The layers of the DCGAN generator against their rooflines: the time of the arithmetic at the tensor cores' (f32: the FMA units') peak,
or of the operands and the result at a copy's bandwidth, whichever is longer; used by bench/report.py."""
import glob
import json
import os

# Dense operations per second, both with 132 multiprocessors (NVIDIA H100 and H200 Tensor Core GPU data sheets, SXM).
PEAKS = {"f16": 989.4e12, "bf16": 989.4e12, "tf32": 494.7e12, "f32": 66.9e12}
HEAD = """
### The DCGAN generator layer by layer

Each transposed convolution (5x5, stride 2) as `bench conv --suite dcgan` measures it, cold L2 cache, and its roofline: the arithmetic at the peak of the data sheet, which no layer can hold at the board's power, or the
tensors at the bandwidth of a copy.

| layer | images | type | kernel | measured, us | roofline, us | bound by | share |
| --- | ---: | --- | --- | ---: | ---: | --- | ---: |
"""


def layer_name(problem):
    """Returns "4x4x512 to 8x8x256" and the number of images of "data n16 c256 8x8 k512 5x5 stride 2,2 ..."."""
    words = problem.split()
    images, channels, size, filters = int(words[1][1:]), words[2][1:], words[3], words[4][1:]
    half = "x".join(str(int(extent) // 2) for extent in size.split("x"))
    return f"{half}x{filters} to {size}x{channels}", images


def tables(results):
    """Returns the text for each GPU in whose table.jsonl these layers were measured, the latest measurement of each."""
    text = {}
    for path in sorted(glob.glob(os.path.join(results, "*", "table.jsonl"))):
        latest = {}
        with open(path, encoding="utf-8") as file:
            for line in map(json.loads, file):
                if line.get("suite") == "dcgan" and line.get("median_seconds") and line["type"] in PEAKS:
                    key = line["type"], line["problem"]
                    if key not in latest or line["time"] >= latest[key]["time"]:
                        latest[key] = line
        for line in latest.values():
            name, images = layer_name(line["problem"])
            arithmetic, memory = line["operations"] / PEAKS[line["type"]], line["bytes"] / line["copy_bytes_per_second"]
            limit = max(arithmetic, memory)
            text[line["gpu"]] = (text.get(line["gpu"], HEAD) + f"| {name} | {images} | {line['type']} | `{line['kernel']}` | "
                                 f"{line['median_seconds'] * 1e6:.1f} | {limit * 1e6:.1f} | {'arithmetic' if arithmetic > memory else 'memory'} | "
                                 f"{limit / line['median_seconds']:.2f} |\n")
    return text
