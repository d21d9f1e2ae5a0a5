#!/usr/bin/python3
# needs: python3-torch
# plain: Python works with what other cases read
"""epochfs.torch with samples that differ in length: pad=, and batches by length."""

import io

import numpy as np

import epochfs
from lib import MOUNTPOINT, contains, equal, mounted, SOURCE, write
from tar_model import shard

from epochfs.torch import Batches, Loader

import torch


def expect(kind, words, call):
    try:
        call()
    except kind as e:
        contains(str(e), *words)
        return
    raise AssertionError(f"expected {kind.__name__} with {words}")


def indexes(batches):
    return [b["index"].tolist() for b in batches]


RAGGED = {"rows": [(n, 3) for n in (1, 4, 2, 4, 3, 1, 2, 1, 5)], "planes": [(1, 3), (2, 1), (3, 5), (3, 5)]}


def array(shape, value):
    f = io.BytesIO()
    np.save(f, np.full(shape, value, "f4"))
    return f.getvalue()


def check_padded(mount):
    """pad=: one tensor, lengths, a multiple, another number, several axes; batches whose samples are alike."""
    for name, shapes in RAGGED.items():
        for plan, options, fill, multiple in (("batch=all", {"pad": ["npy"]}, 0, 1), ("batch=3,seed=2", {"pad": {"npy": -1}}, -1, 1),
                                              ("batch=1", {"pad": ["npy"], "pad_multiple": 8}, 0, 8),
                                              ("batch=2,take=2:4", {"pad": ("npy",)}, 0, 1)):
            batch = next(iter(Batches(mount[name], plan, **options)))
            equal(list(batch), ["npy", "index", "npy_len"], "tensors")
            mine = [shapes[k] for k in batch["index"]]
            several = name == "planes"
            equal(batch["npy_len"].tolist(), [list(shape) if several else shape[0] for shape in mine], f"{name} {plan}: lengths")
            most = [-(-max(shape[0] for shape in mine) // multiple) * multiple, max(shape[1] for shape in mine)]
            want = np.full((len(mine), *most), fill, "f4")
            for i, (shape, k) in enumerate(zip(mine, batch["index"])):
                want[i, :shape[0], :shape[1]] = k + 1
            equal((batch["npy"].dtype, batch["npy"].tolist()), (torch.float32, want.tolist()), f"{name} {plan}")
    rows = mount["rows"]
    expect(KeyError, ["nothing: pad= has it, but not the dataset"], lambda: Batches(rows, "batch=2", pad=["nothing"]))
    expect(KeyError, ["npy: pad= has it, but not fields="], lambda: Batches(rows, "batch=2", fields=["index"], pad=["npy"]))
    expect(ValueError, ["pad: expected encoding='npz'"], lambda: Batches(rows, "batch=2", encoding="npy", pad=["npy"]))
    expect(ValueError, ["pad_multiple: expected 1 or more"], lambda: Batches(rows, "batch=2", pad=["npy"], pad_multiple=0))


def check_by_length(mount):
    """Epochs of different numbers of batches; the same steps for any number of ranks."""
    plan = "batch=npy:5,bucket=4,group=2,seed=3"
    want = [indexes(mount["rows"].batches(plan, epoch=e)) for e in range(6)]
    batches = Batches(mount["rows"], plan, fields=["index"])
    equal(len({len(epoch) for epoch in want}) > 1, True, "epochs of different numbers of batches")
    equal([indexes(batches) for _ in want], want, "passes")
    batches.seek(0)
    equal([(batches.epoch, len(batches), len(list(Loader(batches, num_workers=1)))) for _ in want],
          [(e, len(epoch), len(epoch)) for e, epoch in enumerate(want)], "as many as each epoch has")
    two = [Batches(mount["rows"], f"{plan},rank={k}of2,tail=drop", fields=["index"]) for k in range(2)]
    first = [next(iter(one))["index"].tolist() for one in two]
    equal(first, want[0][:2], "the first step of two ranks")
    batches.load_state_dict(two[0].state_dict())
    equal(indexes(batches), want[0][2:], "one rank goes on after it")
    other = Batches(mount["rows"], plan.replace("npy:5", "npy:6"))
    expect(ValueError, ["batch=npy:5", "batch=npy:6"], lambda: other.load_state_dict(two[0].state_dict()))
    state = {**batches.state_dict(), "batch": 1}
    expect(ValueError, ["the state is of step 1 of 1 batches, and no step of 2 batches begins there"],
           lambda: two[0].load_state_dict(state))


for name, shapes in RAGGED.items():
    write(f"{name}.tar", shard([(f"{k}.npy", array(shape, k + 1)) for k, shape in enumerate(shapes)]))
with mounted(SOURCE):
    datasets = epochfs.open(MOUNTPOINT)
    datasets = {name: datasets[f"{name}.tar"] for name in RAGGED}
    check_padded(datasets)
    check_by_length(datasets)
