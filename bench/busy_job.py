#!/usr/bin/python3
"""A job that trains: a small CNN on Fashion-MNIST, batches of 128 by np.load in its main process,
an .npz each. Arguments: the folder of the plan, threads of torch, epochs. Prints images/s and the
last loss."""

import sys
import time

import numpy as np
import torch
from torch import nn

FOLDER, THREADS, EPOCHS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
BATCHES = 469

torch.set_num_threads(THREADS)
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2),
                    nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 10))
optimizer = torch.optim.SGD(net.parameters(), 0.05)
measure = nn.CrossEntropyLoss()


def train(epoch, batch):
    """Returns the number of images, and the loss."""
    arrays = np.load(f"{FOLDER}/epoch={epoch}/npz/{batch:06}.npz")
    image = torch.from_numpy(arrays["image"]).float().unsqueeze(1).div_(255)
    label = torch.from_numpy(arrays["label"]).long()
    optimizer.zero_grad()
    loss = measure(net(image), label)
    loss.backward()
    optimizer.step()
    return len(image), loss.item()


begin, images, last = time.monotonic(), 0, 0
for e in range(EPOCHS):
    for b in range(BATCHES):
        n, last = train(e, b)
        images += n
print(f"{images / (time.monotonic() - begin):.1f} {last:.6f}")
