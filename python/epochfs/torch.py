"""Batches for PyTorch, resumable to the batch: `Batches`, and `Loader` to read them in worker processes.

    batches = epochfs.torch.Batches(mount["train"], "batch=128,seed=7", fields=["image", "label"])
    for epoch in range(batches.epoch, 10):
        for batch in epochfs.torch.Loader(batches, num_workers=2):
            train(batch["image"], batch["label"])                               # uint8 (128, 28, 28), uint8 (128,)
            state = {"model": model.state_dict(), "data": batches.state_dict()}

After batches.load_state_dict(state["data"]), the loop continues at the next batch.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import select
import threading
import warnings
from typing import Any, Callable, Collection, Iterator, Optional, Union

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from . import _batches, _plan
from ._mount import Dataset
from ._read import Allocate
from .errors import Error

Batch = dict[str, Union[torch.Tensor, list[bytes]]]
WIDER = {np.dtype("u2"): np.int32, np.dtype("u4"): np.int64, np.dtype("u8"): np.int64}  # torch lacks arithmetic for these
EPOCH_MAX = (1 << 63) - 2  # the epoch after it still is an int64
STATE = ("epoch", "batch", "step_size", "samples_of")
ELSEWHERE = {"batch_size": "the plan has it, as batch=128", "shuffle": "the plan has it, as seed=7",
             "sampler": "the plan has it, as seed=7", "batch_sampler": "the plan has it, as batch=128,seed=7",
             "drop_last": "the plan has it, as tail=drop", "pin_memory": "an option of Batches"}
EPOCH, START, UNCOUNTED = range(3)  # what workers see: where the pass began; they set UNCOUNTED if no Loader counts


def _pinned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    try:
        return torch.empty(size, dtype=torch.uint8, pin_memory=True).numpy().view(dtype).reshape(shape)
    except RuntimeError as e:  # like DataLoader: the program also runs without an accelerator
        warnings.warn(f"pin_memory: memory cannot be pinned here: {str(e)[:60]}", stacklevel=2)
        return np.empty(shape, dtype)


class Batches(IterableDataset):
    """The batches of a plan, epoch after epoch, as dicts of tensors.

    It has a position, epoch and batch. A pass of a loop starts there and reads to the end of that epoch. After the last batch of an
    epoch, the position is the start of the next epoch. Each pass is one epoch, in its own order. If you leave a pass early, the
    next pass continues at the next batch. If a pass begins during another pass, the older pass raises RuntimeError at its next
    batch.

    In this process, iterate over it, or use `Loader` to read in workers. A plain DataLoader with batch_size=None also works, with
    any number of workers, fork or spawn, in the right order. But it does not count delivered batches: call `set_epoch()` before
    each pass; `state_dict()` raises.

    dataset: of `load()`, `mount()` or `open()`; workers open it themselves.
    plan: "batch=32,rank=3of8,seed=7,tail=drop": each process of a distributed job names its rank.
    fields, encoding: as in `Dataset.batches()`. Without fields, a batch has all arrays of numbers.
    pad: fields whose samples differ in length. Each becomes one tensor [samples, longest, ...], filled with 0, or with the number of
    a dict such as {"text": 32}; `<field>_len` (samples,) int64 has the lengths. Arrays that differ along several axes are filled
    along each, and `<field>_len` is (samples, axes).
    pad_multiple: rounds the longest up to a multiple of this, for tensor cores.
    pin_memory: tensors in pinned memory. With a mount, bytes are read into it; after `load()` and in workers they are copied.
    Without an accelerator, ordinary memory, with a warning.

    A tensor has the shape and type of its array, but uint16 becomes int32, and uint32 and uint64 become int64. bfloat16 of
    safetensors files is torch.bfloat16. Fields of bytes, such as `key`, become lists of bytes, if fields names them.

    Raises what `Dataset.batches()` and `Batches.read()` of epochfs raise, also out of workers, and Error for a uint64 of 2^63 or
    more.
    """

    def __init__(self, dataset: Dataset, plan: str, *, fields: Collection[str] | None = None, encoding: str = "npz",
                 epoch: int = 0, pin_memory: bool = False, pad: Collection[str] | dict[str, float] = (),
                 pad_multiple: int = 1) -> None:
        super().__init__()
        self.dataset = dataset
        self.plan = plan
        self.fields = _batches.names_of(fields)
        self.encoding = encoding
        self.pin_memory = pin_memory
        self.pad = dict(pad) if isinstance(pad, dict) else dict.fromkeys(_batches.names_of(pad) or (), 0)
        self.pad_multiple = _plan.number("pad_multiple", pad_multiple, EPOCH_MAX)
        if not self.pad_multiple:
            raise ValueError("pad_multiple: expected 1 or more, got 0")
        for name in self.pad:
            if name not in dataset.fields or (self.fields is not None and name not in self.fields):
                raise KeyError(f"{name}: pad= has it, but not {'fields=' if name in dataset.fields else 'the dataset'}")
        if self.pad and encoding != "npz":
            raise ValueError(f"pad: expected encoding='npz', got {encoding!r}")
        self.counted = False  # a Loader reads, and counts what its workers have read
        self.passes = 0  # that have begun in this process; only the latest one goes on
        epoch = _plan.number("epoch", epoch, EPOCH_MAX)
        self._position = (epoch, 0)  # of the next batch; this process only
        self._bfloat16 = [name for name, field in dataset.fields.items() if field.stored_as == "BF16"]
        self._shared = torch.tensor([epoch, 0, 0]).share_memory_()  # persistent workers see it, as well
        self._owner = os.getpid()  # the process whose workers these are
        self._varies = _plan.is_by_length(plan)
        self._count = epoch, self._open(epoch, 0).count  # a plan that does not open is an error here

    def __copy__(self) -> Batches:
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__, counted=False, _shared=self._shared.clone())  # apart from the workers of this object
        return found

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        return self._position[0]

    def __len__(self) -> int:
        """Batches of the epoch of the next batch, even if a pass begins within the epoch."""
        return self._batches_of(self.epoch)

    def _batches_of(self, epoch: int) -> int:
        """Batches of an epoch; by length, epochs have different numbers of them."""
        if self._varies and self._count[0] != epoch:
            self._count = epoch, self._open(epoch, 0).count
        return self._count[1]

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch. If the position is in that epoch, for example after `load_state_dict()`, keep it.
        Raises ValueError for an epoch below 0 or above 2^63 - 1."""
        self.seek(epoch, self._position[1] if epoch == self.epoch else 0)

    def seek(self, epoch: int, batch: int = 0) -> None:
        """The next pass starts at this batch of this epoch. Raises ValueError if the epoch has no such batch."""
        epoch = _plan.number("epoch", epoch, EPOCH_MAX)
        self.reached(epoch, _plan.number("batch", batch, self._batches_of(epoch)))
        if not self.counted:  # else its next pass does, and the workers of this one may yet have to look where it began
            self._tell_workers()

    def state_dict(self) -> dict[str, Any]:
        """The position of the next batch, with the step size and the selected samples.

        All ranks of a step have the same state, so rank 0 saves it for all."""
        if get_worker_info() is not None or int(self._shared[UNCOUNTED]):
            raise RuntimeError("workers have read batches that were not counted: use epochfs.torch.Loader "
                               "in place of DataLoader, and ask for the state in the main process")
        return dict(zip(STATE, (*self._position, _plan.step_size(self.plan), _plan.samples_of(self.plan))))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to the position of `state_dict()` of this plan, with any number of ranks.

        If ranks times batch differ now, the new position is after the same number of samples, or of batches if they are made by
        length. Raises ValueError if no step begins there, or if the plan selects other samples or another order."""
        if state.get("version", 1) != 1:  # states of this version have no version
            raise ValueError(f"the state is of version {state['version']}, this epochfs reads version 1. Use the epochfs that saved it")
        missing = [name for name in STATE if name not in state]
        if missing:
            raise ValueError(f"expected the state of epochfs.torch.Batches, got one without {', '.join(missing)}")
        mine, size = _plan.samples_of(self.plan), _plan.step_size(self.plan)
        if state["samples_of"] != mine:
            raise ValueError(f"the state is of the plan {state['samples_of']!r}, this one is {mine!r}")
        batch, unit = state["batch"], "batches" if self._varies else "samples"
        if state["step_size"] != size and batch:
            if size is None or state["step_size"] is None or batch * state["step_size"] % size:
                raise ValueError(f"the state is of step {batch} of {state['step_size']} {unit}, "
                                 f"and no step of {size} {unit} begins there")
            batch = batch * state["step_size"] // size
        self.seek(state["epoch"], batch)

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        return self._pass() if worker is None else self._share(worker.id, worker.num_workers)

    def _pass(self) -> Iterator[Batch]:
        epoch, start = self.begin()
        number = self.passes
        batches = self._open(epoch, start)
        for k in range(start, batches.count):
            self.check(number)
            batch = self._tensors(batches.read(k))
            self.reached(epoch, k + 1)
            yield batch

    def _share(self, worker: int, workers: int) -> Iterator[Batch]:
        """A DataLoader asks its workers in turn, so each of n workers reads every nth batch."""
        if not self.counted:
            self._shared[UNCOUNTED] = 1
        epoch, start = int(self._shared[EPOCH]), int(self._shared[START])
        batches = self._open(epoch, start)
        for k in range(start + worker, batches.count, workers):
            yield self._tensors(batches.read(k))

    def begin(self) -> tuple[int, int]:
        """For `Loader`: begin a pass at the position, also in workers, and end all others. Returns the position."""
        self.passes += 1
        self._tell_workers()
        return self._position

    def check(self, number: int) -> None:
        """For `Loader`: raise RuntimeError unless pass `number` may take a further batch."""
        if number != self.passes:
            raise RuntimeError("another pass of these Batches has begun, and owns the position; "
                               "to read at two places, iterate over copy.copy(batches)")

    def _tell_workers(self) -> None:
        if self._owner != os.getpid() or not self._shared.is_shared():  # a forked child or a copy has its own workers
            self._shared, self._owner = self._shared.clone().share_memory_(), os.getpid()
        self._shared[EPOCH], self._shared[START] = self._position
        self._shared[UNCOUNTED] = 0

    def reached(self, epoch: int, batch: int) -> None:
        """For `Loader`: `batch` batches of the epoch have been delivered."""
        self._position = (epoch, batch) if batch < self._batches_of(epoch) else (epoch + 1, 0)

    def _open(self, epoch: int, start: int) -> _batches.Batches:
        return self.dataset.batches_of(self.plan, epoch, start, self.fields, self.encoding, self._memory())

    def _memory(self) -> Allocate:
        if self.pin_memory and get_worker_info() is None:
            return _pinned
        return np.empty

    def _padded(self, arrays: dict[str, np.ndarray], name: str, fill: float) -> None:
        """Replace a field of arrays that follow one another by one array, and the lengths."""
        data, offsets, axes = arrays[name], arrays.pop(f"{name}_offsets", None), arrays.pop(f"{name}_shape", None)
        several = None in self.dataset.fields[name].shape[1:]  # in this batch they may differ along one axis, or none
        if axes is None:
            lengths = np.full(len(data), data.shape[1], np.int64) if offsets is None else np.diff(offsets)
            alike = data.shape[2 if offsets is None else 1:]
            axes = np.array([(n, *alike) if several else (n,) for n in lengths], np.int64)
            data = data.reshape(-1) if several else data.reshape(-1, *alike)
        most = axes.max(axis=0)
        most[0] = -(-most[0] // self.pad_multiple) * self.pad_multiple
        if name in self._bfloat16:
            fill = torch.tensor(fill).bfloat16().view(torch.int16).item() & 0xffff
        found = self._memory()((len(axes), *map(int, most), *data.shape[1:]), data.dtype)
        found[...] = fill
        inside = np.ones(found.shape[:1 + len(most)], bool)
        for axis, n in enumerate(most):
            inside &= (np.arange(n) < axes[:, axis, None]).reshape(len(axes), *[n if a == axis else 1 for a in range(len(most))])
        found[inside] = data
        arrays[name], arrays[f"{name}_len"] = found, axes if several else axes[:, 0]

    def _tensors(self, arrays: dict[str, np.ndarray]) -> Batch:
        batch: Batch = {}
        for name, fill in self.pad.items():
            if name in arrays:
                self._padded(arrays, name, fill)
        for name, array in arrays.items():
            if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
                raise Error(None, f"{name}: {array.max()} of uint64 is above what a tensor of int64 has", self.plan)
            if name in self._bfloat16:
                batch[name] = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
            elif array.dtype.kind not in "SV":
                batch[name] = torch.from_numpy(array.astype(WIDER[array.dtype]) if array.dtype in WIDER else array)
            elif self.fields is not None:
                batch[name] = array.tolist()
        return batch


def _end_with(process: int) -> None:
    """End this worker when that process has ended."""
    try:
        ended = select.poll()
        ended.register(os.pidfd_open(process), select.POLLIN)
        ended.poll()
    except ProcessLookupError:
        pass
    except OSError:  # a kernel without pidfd: only DataLoader watches
        return
    os._exit(1)


def _begin_worker(begin: Optional[Callable[[int], None]], worker: int) -> None:
    """Watch the process that this worker serves. DataLoader also does, but it watches the parent process that it finds at its
    start: if the training was killed before, the worker would wait forever and keep the mount in use."""
    training = multiprocessing.parent_process()
    if training and training.pid:
        threading.Thread(target=_end_with, args=(training.pid,), daemon=True).start()
    if begin:
        begin(worker)


class Loader(DataLoader):
    """A DataLoader of `Batches` that counts the delivered batches: `state_dict()` is exact, however far the workers are ahead.

    options are those of a DataLoader: num_workers, collate_fn (called with each batch, in the worker),
    multiprocessing_context, persistent_workers, prefetch_factor. Options that plans or `Batches` have raise TypeError. Yields
    the batches of `Batches`, in the same order."""

    dataset: Batches

    def __init__(self, batches: Batches, **options: Any) -> None:
        if not isinstance(batches, Batches):
            raise TypeError(f"expected epochfs.torch.Batches, got {batches!r:.80}")
        for name, where in ELSEWHERE.items():
            if options.pop(name, None):
                raise TypeError(f"{name}: {where}")
        workers = options.get("num_workers", 0)
        begin = functools.partial(_begin_worker, options.pop("worker_init_fn", None))
        super().__init__(batches, batch_size=None, pin_memory=batches.pin_memory and workers > 0, worker_init_fn=begin, **options)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        if not self.num_workers:
            yield from super().__iter__()
            return
        epoch, k = self.dataset.begin()
        number = self.dataset.passes
        self.dataset.counted = True
        try:
            for batch in super().__iter__():
                k += 1
                self.dataset.reached(epoch, k)
                yield batch
                if k < self.dataset._batches_of(epoch):
                    self.dataset.check(number)
        finally:
            if number == self.dataset.passes:
                self.dataset.counted = False
        if k < self.dataset._batches_of(epoch):
            raise Error(None, f"the workers have ended after batch {k} of {self.dataset._batches_of(epoch)} of epoch {epoch}",
                        self.dataset.plan)

    def set_epoch(self, epoch: int) -> None:
        """As `Batches.set_epoch()`."""
        self.dataset.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """As `Batches.state_dict()`."""
        return self.dataset.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As `Batches.load_state_dict()`."""
        self.dataset.load_state_dict(state)
