"""PyTorch running the DCGAN generator on the CPU; prints one JSON line with images/s (best of several passes).

usage: torch_dcgan.py NETWORK_BIN BATCH THREADS [PASSES]
"""
import json
import sys
import time

import numpy as np
import torch
import torch.nn as nn

path, batch, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
passes = int(sys.argv[4]) if len(sys.argv) > 4 else 5
torch.set_num_threads(threads)
channels = [512, 256, 128, 64, 3]


class Generator(nn.Module):
    def __init__(self, values):
        super().__init__()
        at = 0

        def take(*shape):
            nonlocal at
            size = int(np.prod(shape))
            at += size
            return torch.from_numpy(values[at - size:at].reshape(shape).copy())

        def batch_norm(count):
            norm = nn.BatchNorm2d(count)
            beta, gamma, mean, variance = (take(count) for _ in range(4))
            norm.bias.data, norm.weight.data, norm.running_mean, norm.running_var = beta, gamma, mean, variance
            return norm

        self.projection = nn.Linear(100, 8192)
        self.projection.weight.data = take(100, 8192).T.contiguous()
        self.projection.bias.data = take(8192)
        self.norms = nn.ModuleList([batch_norm(512)])
        self.layers = nn.ModuleList()
        for i in range(4):
            inputs, outputs = channels[i], channels[i + 1]
            layer = nn.ConvTranspose2d(inputs, outputs, 5, stride=2, padding=1)
            layer.weight.data = take(5, 5, outputs, inputs).permute(3, 2, 0, 1).contiguous()
            layer.bias.data = take(outputs)
            self.layers.append(layer)
            if i < 3:
                self.norms.append(batch_norm(outputs))

    def forward(self, z):
        x = self.projection(z).view(-1, 4, 4, 512).permute(0, 3, 1, 2).contiguous(memory_format=self.format)
        x = torch.relu(self.norms[0](x))
        for i, layer in enumerate(self.layers):
            x = layer(x)[:, :, :-1, :-1]
            x = torch.relu(self.norms[i + 1](x)) if i < 3 else torch.tanh(x)
        return x


best = {}
model = Generator(np.fromfile(path, "<f4")).eval()
z = torch.rand(batch, 100) * 2 - 1
with torch.inference_mode():
    for name, memory_format in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
        model = model.to(memory_format=memory_format)
        model.format = memory_format
        model(z)
        times = []
        for _ in range(passes):
            start = time.perf_counter()
            model(z)
            times.append(time.perf_counter() - start)
        best[name] = batch / min(times)
print(json.dumps({"images_per_second": max(best.values()), "by_format": best, "torch": torch.__version__}))
