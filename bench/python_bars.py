#!/usr/bin/python3
"""The bars of the Python module (bench/groups/python.sh): python_bars.py BAR

A job of Fashion-MNIST's size: batches of 128 pictures of 784 bytes, a linear model, plain SGD. Both sides train on the same
number of batches in the same run, in turn, with one thread of PyTorch. Prints the rows of the table as cache_bars.py does.
"""

import os
import statistics
import sys
import time
import warnings

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

from bars import ROUNDS, mount, ratio, row
from lib import FASHION, PRIVATE, equal, load_gz

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
import epochfs
import epochfs.torch

SAMPLES, BATCH, PLAN = 60_000, 128, "batch=128,seed=7"
BATCHES = -(-SAMPLES // BATCH)
FIELDS = ["image", "label"]
WORKERS = 2


class Job:
    """What a job does with a batch, x uint8 (n, 28, 28) and y uint8 (n,): a step of a linear model."""

    def __init__(self):
        torch.manual_seed(1)
        self.model = torch.nn.Linear(784, 10)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self, x, y):
        loss = torch.nn.functional.cross_entropy(self.model(x.flatten(1).float() / 255), y.long())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def pass_over(self, pairs, step=None):
        """Seconds of a pass over all samples."""
        seen, begin = 0, time.monotonic()
        for x, y in pairs:
            (step or self.step)(x, y)
            seen += len(y)
        equal(seen, SAMPLES, "samples of a pass")
        return time.monotonic() - begin


def arrays():
    """All of Fashion-MNIST in memory."""
    return (np.frombuffer(load_gz(f"{FASHION}/train-images-idx3-ubyte.gz")[16:], np.uint8).reshape(SAMPLES, 28, 28).copy(),
            np.frombuffer(load_gz(f"{FASHION}/train-labels-idx1-ubyte.gz")[8:], np.uint8).copy())


def slices(x, y):
    for at in range(0, SAMPLES, BATCH):
        yield torch.from_numpy(x[at:at + BATCH]), torch.from_numpy(y[at:at + BATCH])


def shuffled(x, y, rng):
    order = rng.permutation(SAMPLES)
    for at in range(0, SAMPLES, BATCH):
        chosen = order[at:at + BATCH]
        yield torch.from_numpy(x[chosen]), torch.from_numpy(y[chosen])


def module(at, epoch, workers=0):
    """The batches of the module: in this process Batches, otherwise its Loader."""
    batches = epochfs.torch.Batches(epochfs.open(at)["train"], PLAN, fields=FIELDS, epoch=epoch)
    for batch in epochfs.torch.Loader(batches, num_workers=workers) if workers else batches:
        yield batch["image"], batch["label"]


class ByHand(IterableDataset):
    """What a user writes without the module."""

    def __init__(self, folder):
        self.folder = folder

    def __iter__(self):
        worker = get_worker_info()
        names = sorted(os.listdir(self.folder))
        for name in names[worker.id::worker.num_workers] if worker else names:
            batch = np.load(f"{self.folder}/{name}")
            yield torch.from_numpy(batch["image"]), torch.from_numpy(batch["label"])


def by_hand(at, epoch, workers=0):
    data = ByHand(f"{at}/train/batches/{PLAN}/epoch={epoch}/npz")
    yield from DataLoader(data, batch_size=None, num_workers=workers) if workers else data


class Files(Dataset):
    """A file for each sample, on the disk: what folders of pictures are before they are decoded."""

    def __init__(self, folder, labels):
        self.folder, self.labels = folder, labels

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        return np.fromfile(f"{self.folder}/{i:06d}", np.uint8), self.labels[i]


def rate(times):
    return f"{SAMPLES / statistics.median(times):.0f} images/s"


def a_batch(times):
    return f"{statistics.median(times) / BATCHES * 1e6:.0f} µs"


def in_turn(sides, step=None):
    """{name: seconds of each round}: a pass of each side in each round, after one that is not counted."""
    times = {name: [] for name in sides}
    job = Job()
    for i in range(-1, ROUNDS):
        for name in list(sides) if i % 2 else reversed(list(sides)):
            seconds = job.pass_over(sides[name](i + 1), step)
            if i >= 0:
                times[name].append(seconds)
    return times


def bar_main():
    x, y = arrays()
    with mount(FASHION) as daemon:
        times = in_turn({
            "slices": lambda i: slices(x, y),
            "module": lambda i: module(daemon.at, 0),
            "first": lambda i: module(daemon.at, 1 + i),
            "np.load": lambda i: by_hand(daemon.at, 0)})
        reads = in_turn({
            "module": lambda i: module(daemon.at, 0),
            "np.load": lambda i: by_hand(daemon.at, 0)}, lambda x, y: None)
    for what, name, bar in (("a pass with training, main process", "module", 0.8),
                            ("the same, batches that nobody has read", "first", None),
                            ("the same, by os.listdir and np.load", "np.load", None)):
        row(what, rate(times[name]), f"slices {rate(times['slices'])}", ratio(times["slices"], times[name]),
            ">=" if bar else "-", bar or 0)
    row("a batch read, and nothing else", a_batch(reads["module"]), f"np.load {a_batch(reads['np.load'])}",
        ratio(reads["np.load"], reads["module"]), "-", 0)


def bar_workers():
    with mount(FASHION) as daemon:
        times = in_turn({
            "module": lambda i: module(daemon.at, 0, WORKERS),
            "by hand": lambda i: by_hand(daemon.at, 0, WORKERS)})
    row("a pass with training, 2 workers", rate(times["module"]), f"by hand {rate(times['by hand'])}",
        ratio(times["by hand"], times["module"]), ">=", 0.95)


def bar_loaders():
    """The same job by what people use today; the main process of each where that is faster than workers."""
    import torchvision
    x, y = arrays()
    os.makedirs(f"{PRIVATE}/torch/MNIST/raw")
    os.makedirs(f"{PRIVATE}/files")
    for name in os.listdir(FASHION):
        with open(f"{PRIVATE}/torch/MNIST/raw/{name.removesuffix('.gz')}", "wb") as f:
            f.write(load_gz(f"{FASHION}/{name}"))
    for i, picture in enumerate(x):
        picture.tofile(f"{PRIVATE}/files/{i:06d}")
    to_bytes = torchvision.transforms.PILToTensor()
    mnist = torchvision.datasets.MNIST(f"{PRIVATE}/torch", transform=to_bytes)
    tensors = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    rng = np.random.default_rng(1)
    with mount(FASHION) as daemon:
        times = in_turn({
            "module": lambda i: module(daemon.at, 0),
            "module, 2 workers": lambda i: module(daemon.at, 0, WORKERS),
            "arrays in memory, shuffled": lambda i: shuffled(x, y, rng),
            "TensorDataset": lambda i: DataLoader(tensors, BATCH, shuffle=True),
            "torchvision MNIST": lambda i: DataLoader(mnist, BATCH, shuffle=True),
            "torchvision MNIST, 2 workers": lambda i: DataLoader(mnist, BATCH, shuffle=True, num_workers=WORKERS),
            "a file per sample": lambda i: DataLoader(Files(f"{PRIVATE}/files", y), BATCH, shuffle=True),
            "a file per sample, 2 workers": lambda i: DataLoader(Files(f"{PRIVATE}/files", y), BATCH, shuffle=True,
                                                                 num_workers=WORKERS)})
    for name in times:
        if not name.startswith("module"):
            row("a pass with training, main process", rate(times["module"]), f"{name} {rate(times[name])}",
                ratio(times[name], times["module"]), "-", 0)
    row("the same, 2 workers", rate(times["module, 2 workers"]), f"main process {rate(times['module'])}",
        ratio(times["module"], times["module, 2 workers"]), "-", 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "The given NumPy array is not writable")
    globals()[f"bar_{sys.argv[1]}"]()
