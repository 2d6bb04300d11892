"""Times PyTorch's convolutions on the CPU for the problems on standard input.

usage: torch_conv.py THREADS SECONDS < problems
A problem is a line with a label of `cosmati bench conv --json`: "forward n1 c64 56x56 k64 3x3 stride 1,1 pad 1,1,1,1 nchw"; the memory
format is that of the label. Data are f32, in inference mode; asymmetric padding is done by F.pad, as PyTorch's users do it, and
its time counts. Prints one JSON line per problem: median and minimum of the calls that fit into SECONDS, at least two.
"""
import json
import re
import statistics
import sys
import time

import torch
import torch.nn.functional as F

LABEL = re.compile(r"(?P<direction>\w+) n(?P<n>\d+) c(?P<c>\d+) (?P<h>\d+)x(?P<w>\d+) k(?P<k>\d+) (?P<r>\d+)x(?P<s>\d+) "
                   r"stride (?P<u>\d+),(?P<v>\d+) pad (?P<top>\d+),(?P<bottom>\d+),(?P<left>\d+),(?P<right>\d+)"
                   r"(?: dilation (?P<dy>\d+),(?P<dx>\d+))?(?: groups (?P<groups>\d+))? (?P<format>nchw|nhwc)$")


def call_of(label):
    """Returns a function without arguments that computes the problem."""
    match = LABEL.match(label)
    if not match:
        raise SystemExit(f"torch_conv.py: {label!r} is not a convolution of nchw or nhwc images")
    p = {key: int(value) for key, value in match.groupdict(default=1).items() if key not in ("direction", "format")}
    order = torch.channels_last if match["format"] == "nhwc" else torch.contiguous_format
    stride, dilation, groups = (p["u"], p["v"]), (p["dy"], p["dx"]), p["groups"]
    filters = torch.randn(p["k"], p["c"] // groups, p["r"], p["s"]).to(memory_format=order)
    even = p["top"] == p["bottom"] and p["left"] == p["right"]
    if match["direction"] == "forward":
        x = torch.randn(p["n"], p["c"], p["h"], p["w"]).to(memory_format=order)
        if even:
            return lambda: F.conv2d(x, filters, None, stride, (p["top"], p["left"]), dilation, groups)
        pads = (p["left"], p["right"], p["top"], p["bottom"])
        return lambda: F.conv2d(F.pad(x, pads), filters, None, stride, 0, dilation, groups)
    if match["direction"] not in ("data", "transposed"):
        raise SystemExit(f"torch_conv.py: {label!r}: filter gradients are not supported")
    extent = lambda size, pads, taps, step, apart: (size + pads - apart * (taps - 1) - 1) // step + 1
    rows = extent(p["h"], p["top"] + p["bottom"], p["r"], p["u"], p["dy"])
    columns = extent(p["w"], p["left"] + p["right"], p["s"], p["v"], p["dx"])
    # A view cuts off what lies beyond the end; output padding adds what is missing.
    more = (max(0, p["h"] - ((rows - 1) * p["u"] - 2 * p["top"] + p["dy"] * (p["r"] - 1) + 1)),
            max(0, p["w"] - ((columns - 1) * p["v"] - 2 * p["left"] + p["dx"] * (p["s"] - 1) + 1)))
    y = torch.randn(p["n"], p["k"], rows, columns).to(memory_format=order)

    def transposed():
        x = F.conv_transpose2d(y, filters, None, stride, (p["top"], p["left"]), more, groups, dilation)
        return x[:, :, :p["h"], :p["w"]]

    return transposed


def main():
    threads, seconds = int(sys.argv[1]), float(sys.argv[2])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    with torch.inference_mode():
        for line in sys.stdin:
            call, times = call_of(line.strip()), []
            call()
            begin = time.perf_counter()
            while len(times) < 2 or time.perf_counter() - begin < seconds:
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
            print(json.dumps({"problem": line.strip(), "median_seconds": statistics.median(times), "least_seconds": min(times), "calls": len(times),
                              "torch": torch.__version__}), flush=True)


main()
