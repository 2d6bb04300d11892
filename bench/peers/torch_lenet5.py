"""PyTorch training the modern LeNet-5 on the CPU for one epoch of random images; prints one JSON line with images/s.

usage: torch_lenet5.py BATCH THREADS [IMAGES]
"""
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

batch, threads = int(sys.argv[1]), int(sys.argv[2])
count = int(sys.argv[3]) if len(sys.argv) > 3 else 60000
torch.set_num_threads(threads)
torch.manual_seed(1)


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c3 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.c5, self.f6, self.output = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.c1(x), 2))
        x = F.relu(F.max_pool2d(self.c3(x), 2))
        return self.output(F.relu(self.f6(F.relu(self.c5(x.flatten(1))))))


model = LeNet5()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, foreach=True)
images, labels = torch.randn(count, 1, 28, 28), torch.randint(0, 10, (count,))


def step(chosen):
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(model(images[chosen]), labels[chosen]).backward()
    optimizer.step()


order = torch.randperm(count)
for first in range(0, 10 * batch, batch):
    step(order[first:first + batch])
start = time.perf_counter()
for first in range(0, count - batch + 1, batch):
    step(order[first:first + batch])
seconds = time.perf_counter() - start
print(json.dumps({"images_per_second": count // batch * batch / seconds, "torch": torch.__version__}))
