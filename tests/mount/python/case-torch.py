#!/usr/bin/python3
# needs: python3-torch
"""epochfs.torch with real torch: order with any number of workers, positions, ranks, memory."""

import copy
import glob
import io
import json
import os
import pickle
import shutil
import warnings

import numpy as np

import epochfs
from lib import MOUNTPOINT, PRIVATE, SLOW, SOURCE, contains, equal, run, small, start, stop, write
from page_blocks import ROOT

import torch
from torch.utils.data import DataLoader

import epochfs.sklearn
import epochfs.torch
from epochfs.torch import Batches, Loader

PLAN = "batch=8,seed=7"
N = 100  # samples: 13 batches of 8


def expect(kind, words, call):
    try:
        call()
    except kind as e:
        equal(type(e), kind, f"kind of {e!r}")
        contains(str(e), *words)
        return
    raise AssertionError(f"expected {kind.__name__} with {words}")


def indexes(batches):
    return [b["index"].tolist() for b in batches]


def check_tensors(train, images):
    batch = next(iter(Batches(train, PLAN)))
    equal(list(batch), ["image", "label", "index"], "tensors: what is a number")
    equal((batch["image"].dtype, tuple(batch["image"].shape)), (torch.uint8, (8, 5, 6)), "image")
    equal(batch["image"].tolist(), images[batch["index"].numpy()].tolist(), "pictures")
    batch = next(iter(Batches(train, PLAN, fields=["index", "key"])))
    equal(batch["key"], [b"%06d" % i for i in batch["index"]], "keys")
    batch = next(iter(Batches(train, PLAN, fields=["label1h", "image01"], encoding="npy")))
    equal((list(batch), batch["label1h"].dtype), (["label1h", "image01"], torch.float32), "derived fields")


TYPES = {"u1": torch.uint8, "u2": torch.int32, "u4": torch.int64, "u8": torch.int64, "i8": torch.int64, "f2": torch.float16,
         "b1": torch.bool}
HALF = torch.tensor([[0.5, -1.0], [3.0, 1e30], [float("inf"), 0.0]]).bfloat16()


def top_of(name):
    """The largest number that a tensor can have of the type."""
    return min(np.iinfo(name).max, 2 ** 63 - 1) if name[0] in "iu" else 1


def write_types():
    for name in TYPES:
        f = io.BytesIO()
        np.save(f, np.array([0, 1, top_of(name)], name))
        write(f"types/{name}.npy", f.getvalue())
    header = json.dumps({"w": {"dtype": "BF16", "shape": [3, 2], "data_offsets": [0, 12]}}).encode()
    write("half/w.safetensors", len(header).to_bytes(8, "little") + header + HALF.view(torch.int16).numpy().tobytes())
    for name in "a", "b":
        shutil.copy(f"{SOURCE}/half/w.safetensors", write(f"halves/{name}.safetensors", b""))
    f = io.BytesIO()
    np.save(f, np.array([0, 2 ** 63], "u8"))
    write("above/a.npy", f.getvalue())


def check_types(types, above, half, halves):
    for encoding in ("npz", "npy"):
        found = next(iter(Batches(half, "batch=all", encoding=encoding)))["data"]
        equal((found.dtype, found.tolist()), (torch.bfloat16, HALF.tolist()), f"bfloat16 of {encoding}")
        found = next(iter(Batches(halves, "batch=2,seed=1", encoding=encoding)))["data"]
        equal((found.dtype, found.shape), (torch.bfloat16, (2, 2)), f"bfloat16 of a mix, {encoding}")
    expect(ValueError, ["data: holds BF16", "epochfs.torch"], lambda: next(epochfs.sklearn.rows(half, "batch=all", x="data", y="index")))
    batch = next(iter(Batches(types, "batch=all")))
    for name, want in TYPES.items():
        equal((batch[name].dtype, batch[name].tolist()), (want, [0, 1, top_of(name)]), name)
    expect(epochfs.Error, ["data: 9223372036854775808 of uint64 is above"], lambda: list(Batches(above, "batch=all")))
    equal(next(iter(Batches(above, "batch=all", fields=["index"])))["index"].tolist(), [0, 1], "what is beside it")


def check_epochs(train, want):
    """Each pass is an epoch; one that is left early goes on; state_dict() inside the loop."""
    batches = Batches(train, PLAN, fields=["index"])
    equal((indexes(batches), indexes(batches), batches.epoch), (want[0], want[1], 2), "two passes")
    found = []
    for batch in batches:
        found.append(batch["index"].tolist())
        equal(batches.state_dict(), {"epoch": 2, "batch": len(found), "step_size": 8, "samples_of": "seed=7"}, "state")
        if len(found) == 5:
            break
    equal((len(batches), found + indexes(batches)), (13, want[2]), "a pass that was left goes on")
    batches.set_epoch(1)
    equal(indexes(batches), want[1], "set_epoch()")
    batches.seek(1, 13)
    equal((batches.epoch, indexes(batches)), (2, want[2]), "the end of an epoch is the start of the next")
    batches.seek(1)
    for batch in batches:
        if batch["index"].tolist() == want[1][-1]:
            equal(batches.state_dict(), {"epoch": 2, "batch": 0, "step_size": 8, "samples_of": "seed=7"}, "the last batch")
            break  # as a loop that counts by len() does
    equal(indexes(batches), want[2], "the next epoch")
    equal(batches.epoch, 3, "epoch")
    for epoch, batch, words in ((0, 14, "batch: expected a number from 0 to 13, got 14"), (0, -1, "batch"), (-1, 0, "epoch"),
                                (2 ** 63 - 1, 0, "epoch")):
        expect(ValueError, [words], lambda epoch=epoch, batch=batch: batches.seek(epoch, batch))
        if not batch:
            expect(ValueError, [words], lambda epoch=epoch: Batches(train, PLAN, epoch=epoch))
    for number in (1.0, "1", None):
        expect(TypeError, ["epoch: expected a whole number"], lambda number=number: batches.set_epoch(number))
        expect(TypeError, ["batch: expected a whole number"], lambda number=number: batches.seek(0, number))
    equal(batches.state_dict()["epoch"], 3, "position after seeks that failed")
    for number in (np.int64(2), torch.tensor(2)):
        batches.seek(number, number)
        equal(json.loads(json.dumps(batches.state_dict()))["batch"], 2, "state of a position of numpy or torch")
        equal(indexes(batches), want[2][2:], "what follows")
    equal(next(iter(Batches(train, PLAN, fields=(name for name in ["label"])))).keys(), {"label"}, "names that come once")


def check_two_passes(train, want):
    """The position is that of the latest pass; an older one says so, and takes nothing."""
    for make in (lambda b: b, lambda b: Loader(b, num_workers=2), lambda b: Loader(b, num_workers=1, persistent_workers=True)):
        batches = Batches(train, PLAN, fields=["index"])
        readable = make(batches)
        old = iter(readable)
        found = [next(old)["index"].tolist() for _ in range(2)]
        new = iter(readable)
        found.append(next(new)["index"].tolist())
        expect(RuntimeError, ["another pass of these Batches has begun", "copy.copy(batches)"], lambda old=old: next(old))
        seen = [next(old, None)]
        batches.set_epoch(0)  # inside of a loop: workers of this pass may yet have to look where it began
        found += [b["index"].tolist() for b in new]
        equal((found, seen, batches.epoch), (want[0], [None], 1), "batches of two passes")
        expect(RuntimeError, ["another pass"], lambda readable=readable: list(zip(readable, readable)))
    batches.seek(0)
    pairs = [(a["index"].tolist(), b["index"].tolist()) for a, b in zip(batches, copy.copy(batches))]
    equal(pairs, [(w, w) for w in want[0]], "two places at once")


def check_options(train):
    batches = Batches(train, PLAN)
    for name, value in (("batch_size", 4), ("shuffle", True), ("sampler", [1]), ("drop_last", True), ("pin_memory", True)):
        expect(TypeError, [f"{name}: ", "plan" if name != "pin_memory" else "Batches"],
               lambda name=name, value=value: Loader(batches, **{name: value}))
    equal(len(list(Loader(batches, batch_size=None, shuffle=False, pin_memory=False))), 13, "options that say nothing")
    expect(TypeError, ["expected epochfs.torch.Batches, got <epochfs.Dataset"], lambda: Loader(train))
    for state in ({}, {"epoch": 0, "batch": 1}):
        expect(ValueError, ["got one without", "samples_of"], lambda state=state: batches.load_state_dict(state))
    batches.seek(0, 3)
    again = Batches(train, f"{PLAN},shuffle=full")
    expect(ValueError, ["version 2", "reads version 1"], lambda: batches.load_state_dict({**batches.state_dict(), "version": 2}))
    again.load_state_dict(batches.state_dict())
    equal(again.state_dict(), batches.state_dict(), "the same plan in other words")


def check_releases():
    """States that earlier releases have saved (docs/spec/versions.md)."""
    for folder in glob.glob(f"{ROOT}/tests/compat/*/states.json"):
        with open(folder, encoding="ascii") as f, epochfs.load(f"{os.path.dirname(folder)}/source/x.npy") as data:
            for kept in json.load(f):
                batches = Batches(data["x"], kept["plan"], fields=["index"])
                batches.load_state_dict(kept["state"])
                equal((next(iter(batches))["index"].tolist(), batches.epoch), (kept["next"], kept["state"]["epoch"]), f"{folder}: {kept}")


def check_workers(train, want, context, workers):
    options = dict(num_workers=workers, multiprocessing_context=context)
    for persistent in (False, True) if context == "fork" else (True,):  # each spawned worker imports torch
        batches = Batches(train, PLAN, fields=["index"])
        loader = Loader(batches, persistent_workers=persistent, **options)
        equal((len(loader), indexes(loader)), (13, want[0]), "the first pass")
        found = []
        for batch in loader:
            found.append(batch["index"].tolist())
            if len(found) == 5:
                break
        state = json.loads(json.dumps(loader.state_dict()))
        equal((state["epoch"], state["batch"]), (1, 5), "state in the middle of an epoch")
        equal(found + indexes(loader), want[1], "the pass goes on")
        loader.set_epoch(0)
        equal(indexes(loader), want[0], "set_epoch() reaches workers")
        again = Batches(train, PLAN, fields=["index"])
        again.load_state_dict(state)
        again.set_epoch(1)
        equal((len(again), indexes(Loader(again, **options))), (13, want[1][5:]), "resumed")
        counted = [batch["index"].tolist() for _, batch in zip(range(13), Loader(again, **options))]
        equal((counted, again.epoch, indexes(Loader(again, **options))), (want[2], 3, want[3]), "loops that count by len()")
    plain = Batches(train, PLAN, fields=["index"], epoch=1)
    equal(indexes(DataLoader(plain, batch_size=None, **options)), want[1], "a plain DataLoader")
    expect(RuntimeError, ["use epochfs.torch.Loader"], plain.state_dict)


def check_counts(train, want):
    """Who counts is known for each pass, whatever loaders there are of the same batches."""
    batches = Batches(train, PLAN, fields=["index"])
    loader, plain = Loader(batches, num_workers=1), DataLoader(batches, batch_size=None, num_workers=1)
    equal(indexes(plain), want[0], "a plain DataLoader beside a Loader")
    expect(RuntimeError, ["use epochfs.torch.Loader"], batches.state_dict)
    batches.set_epoch(1)
    equal((indexes(loader), batches.state_dict()["epoch"]), (want[1], 2), "a Loader after a plain DataLoader")


def check_copies(train, want):
    """Copies, and what forked processes have, are others: workers of one see nothing of the rest."""
    batches = Batches(train, PLAN, fields=["index"])
    for copied in (copy.copy(batches), copy.deepcopy(batches), pickle.loads(pickle.dumps(batches))):
        loader = Loader(copied, num_workers=2, persistent_workers=True)
        found = []
        for epoch in range(3):
            batches.seek(7, 5)
            found.append(indexes(loader))
        equal(found, want[:3], "epochs of a copy with workers that persist")
        equal((copied.epoch, batches.epoch), (3, 7), "positions")
    batches = Batches(train, PLAN, fields=["index"])
    began = Batches.begin

    def begin(self):
        """Another process goes elsewhere after this one's pass has begun, and before its workers have."""
        place = began(self)
        pid = os.fork()
        if pid == 0:
            try:
                Batches.begin = began
                self.seek(3, 5)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        return place

    Batches.begin = begin
    try:
        equal(indexes(Loader(batches, num_workers=2)), want[0], "a pass while a forked process seeks")
    finally:
        Batches.begin = began


def check_seek_inside(train, want):
    """A position that is set inside of a loop is of the next pass; workers that have not begun yet keep to this one's."""
    given, end = os.pipe()
    batches = Batches(train, PLAN, fields=["index"])
    old = iter(Loader(batches, num_workers=1))
    next(old)
    share = batches._share

    def late(worker, workers):
        if worker:
            os.read(given, 1)
        yield from share(worker, workers)

    batches._share = late
    found = []
    for batch in Loader(batches, num_workers=2):
        if not found:
            old.close()  # the end of an older pass changes nothing for this one
            other = copy.copy(batches)  # nor does another place
            other.seek(2, 5)
            equal(next(iter(other))["index"].tolist(), want[2][5], "a batch of the copy")
            batches.set_epoch(0)
            os.write(end, b"x")
        found.append(batch["index"].tolist())
    equal(found, want[0][1:], "batches")
    os.close(given)
    os.close(end)


def check_ranks(train):
    """Any number of ranks that share a step of 24 samples goes on where another has stopped."""
    def job(ranks, state, steps):
        seen = []
        for rank in range(ranks):
            mine = Batches(train, f"batch={24 // ranks},rank={rank}of{ranks},seed=7,tail=drop", fields=["index"])
            if state:
                mine.load_state_dict(state)
            seen.append([b["index"].tolist() for _, b in zip(range(steps), mine)])
            after = mine.state_dict()
        return [sorted(i for part in step for i in part) for step in zip(*seen)], after

    whole, _ = job(1, None, 4)
    equal(len(whole), 4, "steps")
    for before in (1, 2, 3, 4, 6):
        first, state = job(before, None, 2)
        for after in (1, 2, 3, 4, 6):
            rest, _ = job(after, state, 2)
            equal(first + rest, whole, f"steps of {before} ranks, then {after}")
    _, state = job(2, None, 2)
    other = Batches(train, "batch=16,seed=7")
    other.load_state_dict(state)
    equal(other.state_dict()["batch"], 3, "48 samples are 3 batches of 16")
    expect(ValueError, ["step 2 of 24 samples", "no step of 7 samples"],
           lambda: Batches(train, "batch=7,seed=7").load_state_dict(state))
    expect(ValueError, ["'seed=7'", "'seed=8'"], lambda: Batches(train, "batch=24,seed=8").load_state_dict(state))


def check_lengths(train):
    """Epochs of batches by length have different numbers of them; a position is one of batches, whatever the ranks."""
    batches = Batches(train, "batch=label:30,bucket=32,seed=7")
    counts = []
    for _ in range(4):
        counts.append(len(batches))
        equal(len(indexes(batches)), counts[-1], "batches of an epoch")
    equal(len(set(counts)) > 1, True, f"counts {counts}")
    batches.seek(0, 4)
    ranks = Batches(train, "batch=label:30,bucket=32,rank=1of2,seed=7")
    ranks.load_state_dict(batches.state_dict())
    equal(indexes(ranks), indexes(batches)[1::2], "resumed by two ranks")


def read_mix(mix, ranks, state, steps):
    """(source, sample) of each global step, its ranks interleaved, and the state after them."""
    found, own = [], [Batches(mix, f"batch={32 // ranks},rank={k}of{ranks},seed=7,tail=drop", fields=["source", "index"])
                      for k in range(ranks)]
    for batches in own if state else ():
        batches.load_state_dict(state)
    while len(found) < steps:
        for parts in zip(*own):
            found.append(torch.stack([torch.stack([p["source"], p["index"]], 1) for p in parts], 1).flatten(0, 1).tolist())
            if len(found) == steps:
                break
    states = [batches.state_dict() for batches in own]
    equal(all(s == states[0] for s in states), True, "the state of all ranks")
    return found, states[0]


def check_mix(mix):
    """Other numbers of ranks read the same global batches, over the ends of epochs, wherever they go on."""
    alone, _ = read_mix(mix, 1, None, 12)
    equal({source for source, _ in alone[0]}, {0, 1}, "sources of a step")
    equal(alone[0] != alone[3], True, "the next epoch goes on")
    state, found = None, []
    for ranks, steps in ((4, 2), (2, 3), (8, 1), (1, 2), (16, 4)):
        more, state = read_mix(mix, ranks, state, steps)
        found += more
    equal(found, alone, "global batches")


def check_pinned(train):
    """Bytes are read into the memory that torch gives, and tensors are that memory: without a GPU, seen by its stand-in."""
    given = []

    def pinned(shape, dtype):
        equal(dtype, np.uint8, "dtype")
        given.append(torch.empty(shape, dtype=torch.uint8))
        return given[-1].numpy()

    real, epochfs.torch._pinned = epochfs.torch._pinned, pinned
    batch = next(iter(Batches(train, PLAN, fields=["image"], pin_memory=True)))
    epochfs.torch._pinned = real
    equal([t.data_ptr() for t in given], [batch["image"].data_ptr()], "memory of the tensor")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = next(iter(Batches(train, PLAN, fields=["image"], pin_memory=True)))["image"]
    equal(found.tolist(), batch["image"].tolist(), "pictures, pinned or not")
    equal((found.is_pinned(), len(said)), (True, 0) if torch.cuda.is_available() else (False, 1), "is it pinned, and warnings")


def check_ends(train):
    """A plan that does not open; workers that end early."""
    expect(epochfs.PlanError, ["does not open", "foo"], lambda: Batches(train, "batch=8,foo=1"))
    batches = Batches(train, PLAN)
    batches._share = lambda worker, workers: iter(())
    expect(epochfs.Error, ["after batch 0 of 13 of epoch 0"], lambda: list(Loader(batches, num_workers=1)))


def main():
    warnings.filterwarnings("ignore", "This DataLoader will create")
    images, _ = small(N)
    write_types()
    daemon = start(SOURCE, "mix=mixed=train:split=0@1:1*3+train:split=1@1:1*1", "mix=two=halves/a*1+halves/b*1")
    mount = epochfs.open(MOUNTPOINT)
    train = mount["train"]
    want = [indexes(train.batches(PLAN, epoch=e)) for e in range(4)]
    equal(sorted(i for b in want[2] for i in b), list(range(N)), "samples of an epoch")
    check_tensors(train, images)
    check_types(mount["types/all"], mount["above/a"], mount["half/w"], mount["two"])
    check_epochs(train, want)
    for context, workers in [("fork", 1), ("fork", 2), ("fork", 3), ("spawn", 2)] if not SLOW else [("fork", 2)]:
        check_workers(train, want, context, workers)
    equal(indexes(Loader(Batches(train, PLAN), num_workers=0)), want[0], "no workers")
    check_counts(train, want)
    check_two_passes(train, want)
    check_options(train)
    check_copies(train, want)
    check_seek_inside(train, want)
    check_ranks(train)
    check_lengths(train)
    check_mix(mount["mixed"])
    check_pinned(train)
    check_ends(train)
    check_releases()
    stop(daemon)


if __name__ == "__main__":
    main()
