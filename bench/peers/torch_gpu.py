"""PyTorch on one GPU with resident data: trains the modern LeNet-5, runs the DCGAN generator and trains it against its
discriminator. Prepares each NAME in three modes (eager, CUDA graph, torch.compile with a graph) and prints one JSON line
with the failures. Then, for each line on stdin that contains a NAME, briefly measures all modes and prints a JSON line
with images/s by mode.

usage: torch_gpu.py NAME...     NAME: lenet5-64 (the batch), dcgan-f32-1024 (type, batch; f32, tf32, f16),
                                gan-bf16-256 (type, batch; f32, tf32, or bf16 by autocast)
"""
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True
INNER = 10  # steps per graph


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c3 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.c5, self.f6, self.output = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c3(x)), 2)
        return self.output(F.relu(self.f6(F.relu(self.c5(x.flatten(1))))))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        channels = [512, 256, 128, 64, 3]
        self.projection = nn.Linear(100, 8192)
        self.layers = nn.ModuleList(nn.ConvTranspose2d(channels[i], channels[i + 1], 5, 2, 2, 1) for i in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm2d(c) for c in channels[:4])

    def forward(self, z):
        x = self.projection(z).view(-1, 512, 4, 4).contiguous(memory_format=torch.channels_last)
        x = F.relu(self.norms[0](x))
        for i, layer in enumerate(self.layers):
            x = layer(x)
            x = F.relu(self.norms[i + 1](x)) if i < 3 else torch.tanh(x)
        return x


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        channels = [3, 64, 128, 256, 512]
        self.layers = nn.ModuleList(nn.Conv2d(channels[i], channels[i + 1], 5, 2, 2, bias=i == 0) for i in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm2d(c) for c in channels[2:])
        self.output = nn.Linear(8192, 1)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            x = F.leaky_relu(self.norms[i - 1](x) if i > 0 else x, 0.2)
        return self.output(x.flatten(1))


def use_tf32(use):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = use


def lenet5(batch, compiled):
    """One training step on a fixed batch: forward, backward, SGD with momentum and weight decay; factors in TF32."""
    use_tf32(True)
    model = LeNet5().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, foreach=True)
    x, labels = torch.randn(batch, 1, 28, 28, device="cuda"), torch.randint(0, 10, (batch,), device="cuda")
    network = torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(network(x), labels).backward()
        optimizer.step()
    return step


def dcgan(kind, batch, compiled):
    use_tf32(kind == "tf32")
    data_type = torch.float16 if kind == "f16" else torch.float32
    model = Generator().to("cuda", data_type).to(memory_format=torch.channels_last).eval()
    z = torch.randn(batch, 100, device="cuda", dtype=data_type)
    network = torch.compile(model) if compiled else model

    def step():
        with torch.inference_mode():
            network(z)
    return step


def gan(kind, batch, compiled):
    """One training step of both networks on a fixed batch, the order of DCGAN's paper: generate; the discriminator learns from
    the data and from the generated batch, each with its own statistics; the generator learns from the updated discriminator."""
    use_tf32(kind != "f32")
    networks = [network().cuda().to(memory_format=torch.channels_last) for network in (Generator, Discriminator)]
    adams = [torch.optim.Adam(n.parameters(), 2e-4, (0.5, 0.999), fused=True, capturable=True) for n in networks]
    data = torch.rand(batch, 3, 64, 64, device="cuda").contiguous(memory_format=torch.channels_last) * 2 - 1
    ones, zeros = torch.ones(batch, 1, device="cuda"), torch.zeros(batch, 1, device="cuda")
    loss = F.binary_cross_entropy_with_logits
    generator, discriminator = (torch.compile(n) if compiled else n for n in networks)

    def autocast():  # a graph must not keep the copies of the weights in 16 bits
        return torch.autocast("cuda", torch.bfloat16, enabled=kind == "bf16", cache_enabled=False)

    def step():
        z = torch.rand(batch, 100, device="cuda") * 2 - 1
        for adam in adams:
            adam.zero_grad(set_to_none=True)
        networks[1].requires_grad_(True)
        with autocast():
            images = generator(z)
            logits = discriminator(data), discriminator(images.detach())
        (loss(logits[0].float(), ones) + loss(logits[1].float(), zeros)).backward()
        adams[1].step()
        networks[1].requires_grad_(False)
        with autocast():
            logit = discriminator(images)
        loss(logit.float(), ones).backward()
        adams[0].step()
    return step


def recorded(step):
    """Captures INNER repetitions of the step in a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(INNER):
            step()
    return graph.replay


NETWORKS = {"lenet5": lenet5, "dcgan": dcgan, "gan": gan}


def prepared(name):
    """Returns (function, steps per call, objects to keep alive) by mode, and the failures by mode."""
    network, *words = name.split("-")
    batch, ways, failures = int(words[-1]), {}, {}
    for way in ("eager", "graph", "compile"):
        try:
            step = NETWORKS[network](*words[:-1], batch, way == "compile")
            for _ in range(5):
                step()
            torch.cuda.synchronize()
            ways[way] = (step, 1, step) if way == "eager" else (recorded(step), INNER, step)  # a graph does not own its tensors
        except Exception as error:  # a mode that fails is reported and does not end the others
            failures[way] = f"{type(error).__name__}: {error}"[:200]
    return batch, ways, failures


def images_per_second(call, images, seconds=0.15):
    """Returns the rate at the median time, by events, of the calls that fit into `seconds`."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin, done = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        done.record()
        done.synchronize()
        times.append(begin.elapsed_time(done) * 1e-3)
    return images / sorted(times)[len(times) // 2]


known = {name: prepared(name) for name in sys.argv[1:]}
print(json.dumps({"torch": torch.__version__, "failures": {name: one[2] for name, one in known.items() if one[2]}}), flush=True)
for line in sys.stdin:
    batch, ways, _ = known[line.strip()]
    use_tf32("-f32" not in line)
    print(json.dumps({way: images_per_second(call, batch * steps) for way, (call, steps, _) in ways.items()}), flush=True)
