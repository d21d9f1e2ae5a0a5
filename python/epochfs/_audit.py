"""`epochfs audit`: reads an epoch of a mount, and proves that it is what its plan says.

The samples of the plan's list are read twice, as any program reads them: in stored order, which needs no order of an epoch, and
as the plan shows them. Nothing here uses the order of an epoch, nor asks the daemon how it made one: the counts follow from what
the words of the plan promise. So a fault of the order, of a format or of the cache is seen.

The command parses the plan, and gives its words as JSON.
"""

from __future__ import annotations

import collections
import errno
import hashlib
import json
import os
import re
import sys
from typing import Any, Generator, Iterator

import numpy as np

from ._audit_batch import AUDIT, MOUNT, Batch, Failed, bad, failed, is_frame, longest_of
from ._human import Progress
from ._read import read_npz
from .errors import BadBatchError

DONE, USAGE, SYSTEM = 0, 1, 6  # exit codes of epochfs
BATCH_OF_ALL = 128  # samples read at a time where the plan says batch=all
FAULTS_SHOWN = 3
ROUNDING = 1e-6     # of a share: weights become whole numbers
EXACT = 1e-12       # of a share: doubles are not exact
SOURCES_MOST = 256


# ---- the shares of a mix ----


class Mix:
    """What dataset.json says of a mix: its sources, and their weights. After any number of positions, each source was shown as
    often as its weight says, less than one off."""

    def __init__(self, about: dict[str, Any], folder: str, samples: int, batch: int) -> None:
        self.epoch_samples = int(about["epoch_samples"])
        above = os.path.dirname(folder)
        self.first = [int(source["first_sample"]) for source in about["sources"]]
        self.folders = [f"{above}/{source['dataset']}/batches/" + ",".join(
            filter(None, [f"batch={batch}", source["words"].replace("+", ",")])) + "/npz" for source in about["sources"]]
        self.count = [end - first for first, end in zip(self.first, [*self.first[1:], samples])]
        self.stretches = [(int(s["position"]), [max(int(w), 0) for w in s["weights"]]) for s in about["weights"]]
        starts = [start for start, _ in self.stretches]
        if not self.epoch_samples or not starts or starts[0] or sorted(set(starts)) != starts or min(self.count) < 0 or \
                not 0 < len(self.first) <= SOURCES_MOST or any(len(w) < len(self.first) or not sum(w) for _, w in self.stretches):
            raise ValueError(os.strerror(errno.EBADMSG))

    def _ends(self) -> Iterator[tuple[int, float, list[int]]]:
        for i, (start, weights) in enumerate(self.stretches):
            yield start, self.stretches[i + 1][0] if i + 1 < len(self.stretches) else float("inf"), weights[:len(self.first)]

    def bounds(self, source: int, position: int, positions: int) -> tuple[int, int]:
        """How often some positions show a source, at least and at most."""
        least = most = 0
        for start, end, weights in self._ends():
            begin, stop = max(position, start), min(position + positions, end)
            due, total = (int(stop) - begin) * weights[source] if begin < stop else 0, sum(weights)
            slack = bool(due and begin > start)  # less than one off at both ends, but exact where the stretch begins
            least += max(due // total - slack, 0)
            most += -(-due // total) + slack
        return least, most

    def watch(self, position: int, positions: int) -> Generator[bool, int, None]:
        """A generator: send() it the source of each position in turn; it gives whether that was due."""
        source = yield True
        for start, end, weights in self._ends():
            total, seen, shown = sum(weights), 0, [0] * len(weights)
            slack = 1 if position <= start else 2  # if the first position that is seen is not the stretch's first one

            def _is_due(source: int) -> bool:
                # Its due share grows in a straight line: it is furthest off just before it is shown, or just after.
                return abs(shown[source] * total - seen * weights[source]) < slack * total

            while position < end and positions:
                good = 0 <= source < len(shown) and _is_due(source)
                seen += 1
                if 0 <= source < len(shown):
                    shown[source] += 1
                good = good and _is_due(source)
                position, positions = position + 1, positions - 1
                source = yield good
        while True:
            yield True


# ---- what was seen of each sample ----


class Tally:
    """Faults, and what was seen of each sample: in the stored order, and in the epoch."""

    def __init__(self, samples: int) -> None:
        self.samples, self.faults, self.shown = samples, 0, []  # type: int, int, list[str]
        self.elements = 0
        self._list: list[tuple[str, np.ndarray, np.ndarray, np.ndarray]] = []
        self._sum = hashlib.sha256()

    def fault(self, line: str) -> None:
        """Count it; the first ones are shown."""
        self.faults += 1
        if self.faults <= FAULTS_SHOWN:
            self.shown.append(line)

    def add_to_list(self, batch: Batch, name: str) -> None:
        """Note a batch of the list."""
        self._list.append((name, batch.number, batch.value, batch.digests()))

    def end_list(self) -> None:
        """Sort what the list has: a sample may have several places."""
        names, numbers, values, digests = zip(*self._list) if self._list else ((), (), (), ())
        number = np.concatenate([np.empty(0, np.uint64), *numbers])
        digest = np.concatenate([np.empty((0, 32), np.uint8), *digests])
        value = np.concatenate([np.empty(0), *values])
        self.number, first, inverse, self.listed = np.unique(number, return_index=True, return_inverse=True, return_counts=True)
        self.places = len(number)
        self.digest, self.value = digest[first], value[first]
        self.seen = np.zeros(len(first), np.int64)
        starts = np.cumsum([0, *(len(n) for n in numbers)])
        other = (self.digest[inverse] != digest).any(axis=1)
        for i in np.flatnonzero(other | (number >= self.samples)):
            at = int(np.searchsorted(starts, i, "right")) - 1
            where = f"{names[at]}: place {i - starts[at]}: "
            if number[i] >= self.samples:
                self.fault(f"{where}expected a sample below {self.samples}, got {number[i]}")
            else:
                self.fault(f"{where}sample {number[i]} is not what it was before")
        self._list.clear()
        keep = self.number < self.samples
        self.number, self.listed, self.digest, self.value, self.seen = (
            a[keep] for a in (self.number, self.listed, self.digest, self.value, self.seen))

    def add(self, batch: Batch, name: str) -> None:
        """Note a batch of the epoch."""
        self.elements += batch.n
        digests = batch.digests()
        self._sum.update(digests.data)
        if not batch.n:
            return
        at = np.minimum(np.searchsorted(self.number, batch.number), max(len(self.number) - 1, 0))
        known = self.number[at] == batch.number if len(self.number) else np.zeros(batch.n, bool)
        same = known.copy()
        same[known] = (self.digest[at[known]] == digests[known]).all(axis=1)
        np.add.at(self.seen, at[known], 1)
        for i in np.flatnonzero(~same):
            reason = "differs from the stored order" if known[i] else "is not in the plan's list"
            self.fault(f"{name}: place {i}: sample {batch.number[i]} {reason}")

    def check_runs(self, batch: Batch, name: str, classes: int, each: int) -> None:
        """A batch should have so many classes, each with a run of `each` samples."""
        value = batch.value
        for i in range(1, batch.n):
            if i % each and value[i] != value[i - 1]:
                self.fault(f"{name}: place {i}: expected a run of {each} samples of a class, got another class")
        for v, n in collections.Counter(value[::each].tolist()).items():
            for _ in range(n - 1):
                self.fault(f"{name}: expected {classes} different classes, got {v:g} again")

    def classes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The values of the field in the list, how many places each has, and which one each sample has."""
        values, which = np.unique(self.value, return_inverse=True)
        return values, np.bincount(which, self.listed, len(values)), which

    def sha256(self) -> str:
        """That of the digests of the epoch's samples, in their order."""
        return self._sum.hexdigest()


# ---- the proof ----


class Rule:
    """What the parameters of a plan promise of its list, for one of its ranks or all of them."""

    def __init__(self, plan: dict[str, Any], tally: Tally, mix: Mix | None) -> None:
        def _of_rank(units: int) -> int:
            return {"keep": max(-(-(units - plan["rank"]) // plan["ranks"]), 0), "drop": units // plan["ranks"],
                    "wrap": -(-units // plan["ranks"])}[plan["tail"]]

        self.places, keeps = tally.places, plan["tail"] == "keep"
        places = mix.epoch_samples if mix else self.places
        size, batch = plan["classes"] * plan["of_class"], plan["batch"]
        self.promised = places
        if plan["draw"]:
            self.promised = plan["draws"] if places else 0
        elif size:
            _, each, _ = tally.classes()
            self.promised = len(each) // plan["classes"] * size * -(-int(each.max(initial=0)) // plan["of_class"])
        self.positions = self.promised if plan["limit"] is None else min(plan["limit"], self.promised)
        if size:  # batches are dealt whole
            full, over = divmod(self.positions, size)
            elements = _of_rank(full + bool(over and plan["tail"] != "drop")) * size
            if over and keeps and full % plan["ranks"] == plan["rank"]:
                elements -= size - over
        else:
            elements = _of_rank(self.positions)
        if plan["by_length"]:
            elements = self.positions
        elif batch and not keeps:
            elements = (elements // batch if plan["tail"] == "drop" else -(-elements // batch)) * batch
        self.elements = self.positions if keeps else elements * plan["ranks"]  # with tail=keep, each rank has as many
        self.read = self.elements if plan["all_ranks"] else elements
        if plan["by_length"]:  # see cut()
            self.read = self.positions if plan["all_ranks"] or plan["ranks"] == 1 else 0

    def cut(self, plan: dict[str, Any], seen: int) -> None:
        """How many samples a rank reads, or tail= leaves, follows from their lengths: as many as there are."""
        if plan["by_length"] and (plan["tail"] != "keep" or self.read < self.elements):
            self.read = seen
            self.elements = max(self.positions, seen)

    def passes(self) -> tuple[int, bool]:
        """How often the epoch has its positions: times, and in part again."""
        return (self.elements // self.positions, self.elements % self.positions > 0) if self.positions else (0, False)


def share_of(plan: dict[str, Any], rule: Rule, tally: Tally) -> np.ndarray:
    """How often each place of a sample should come among the promised positions, perhaps not a whole number."""
    if plan["draw"] == "balanced":
        values, places, which = tally.classes()
        return rule.promised / (len(values) * places[which])
    if plan["draw"] == "weights":
        total = float((tally.listed * tally.value).sum())
        return rule.promised * tally.value / total if total > 0 else np.zeros(len(tally.value))
    return np.full(len(tally.number), rule.promised / rule.places if rule.places else 0.0)


def compare(plan: dict[str, Any], rule: Rule, tally: Tally) -> None:
    """Compare how often each sample came with how often it may come: each of its places floor or ceil of its share."""
    share = share_of(plan, rule, tally)
    whole, (times, more) = np.rint(share), rule.passes()
    if plan["draw"] == "weights":
        least, most = np.maximum(0, np.floor(share - ROUNDING * (share + 1))), np.ceil(share + ROUNDING * share)
    else:
        exact = np.abs(share - whole) < EXACT * (share + 1)
        least, most = np.where(exact, whole, np.floor(share)), np.where(exact, whole, np.ceil(share))
    least, most = least * times * tally.listed, most * (times + more) * tally.listed
    if rule.positions < rule.promised or rule.read < rule.elements:
        least[:] = 0
    if plan["classes"]:  # how often is not said
        least[:], most[:] = 0, np.inf
    for i in np.flatnonzero((tally.seen < least) | (tally.seen > most)):
        tally.fault(f"sample {tally.number[i]}: expected {least[i]:.0f} to {most[i]:.0f} times in the epoch, "
                    f"got {tally.seen[i]} times")


def compare_source(mix: Mix, k: int, position: int, rule: Rule, tally: Tally) -> None:
    """A source's elements in an epoch are a run of its passes, so a sample may come one time more or less than the passes that are
    whole. With tail=wrap all of that comes again, and again in part."""
    low, high = mix.bounds(k, position, rule.positions)
    part = slice(*np.searchsorted(tally.number, np.array([mix.first[k], mix.first[k] + mix.count[k]], np.uint64)))
    seen, places, (times, more) = int(tally.seen[part].sum()), int(tally.listed[part].sum()), rule.passes()
    if not places:
        return
    is_whole = rule.read == rule.elements
    if is_whole and rule.elements == rule.positions and not low <= seen <= high:
        tally.fault(f"samples from {mix.first[k]} on: expected {low} to {high} of their source in the epoch, got {seen}")
    least = (low // places - 1) * times if is_whole and low // places else 0
    most = ((high - 2) // places + 2 if high > 1 else high) * (times + more)
    for number, listed, n in zip(tally.number[part], tally.listed[part].tolist(), tally.seen[part].tolist()):
        if not least * listed <= n <= most * listed:
            tally.fault(f"sample {number}: expected {least * listed} to {most * listed} times in the epoch, got {n} times")


class Audit:
    """One run of the command. plan: its words, as fs/cli/audit.c writes them."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.folder = self._find()
        about = self._about()
        self.tally = Tally(int(about["samples"]))
        self.mix: Mix | None = None
        if about.get("mix"):
            try:
                self.mix = Mix(about["mix"], self.folder, self.tally.samples, plan["batch"] or BATCH_OF_ALL)
            except (KeyError, TypeError, ValueError):
                raise Failed(MOUNT, f"{self.folder}/dataset.json: the description of the mix: "
                                    f"{os.strerror(errno.EBADMSG)}") from None
        self.field = (plan["field"] or about.get("label") or "label") if plan["classes"] or plan["draw"] == "balanced" else \
            plan["field"] or None
        self.members: set[str] | None = None
        self.progress = Progress("audited", plan["progress"])
        self.done = self.total = 0
        self.position = plan["epoch"] * self.mix.epoch_samples if self.mix else 0

    # -- which dataset --

    def _find(self) -> str:
        at = self.plan["mountpoint"]
        try:
            os.stat(at)
        except OSError as e:
            if e.errno == errno.ENOTCONN:
                raise Failed(MOUNT, f"{at}: its daemon has died; `epochfs umount` it") from e
            raise failed(e, at) from e
        found = [at] if os.path.exists(f"{at}/dataset.json") else list(self._datasets(at, 2))
        if len(found) != 1:
            raise Failed(USAGE, f"{at}: expected the folder of one dataset, got {len(found)}{': ' if found else ''}"
                                + " ".join(found))
        return found[0]

    def _datasets(self, folder: str, depth: int) -> Iterator[str]:
        try:
            entries = [e.name for e in os.scandir(folder) if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)]
        except OSError:
            return
        for name in entries:
            path = f"{folder}/{name}"
            if os.path.exists(f"{path}/dataset.json"):
                yield path
            elif depth:
                yield from self._datasets(path, depth - 1)

    def _about(self) -> dict[str, Any]:
        path = f"{self.folder}/dataset.json"
        try:
            with open(path, "rb") as f:
                about = json.loads(f.read())
            if isinstance(about, dict) and isinstance(about.get("samples"), int):
                return about
            reason = os.strerror(errno.EBADMSG)
        except OSError as e:
            reason = str(e.strerror)
        except ValueError:
            reason = os.strerror(errno.EBADMSG)
        raise Failed(MOUNT, f"{path}: expected the description of a dataset: {reason}")

    # -- batches --

    def _npz(self, name: str) -> str:
        epoch = f"/epoch={self.plan['epoch']}" if self.plan["has_epochs"] and name != self.plan["list"] else ""
        return f"{self.folder}/batches/{name}{epoch}/npz"

    def _refused(self, folder: str) -> Failed:
        """Why the mount refuses the plan, as its status says it; without that, where to look."""
        name, at = folder[len(self.folder) + len("/batches/"):].split("/")[0], self.folder
        while not os.path.exists(f"{at}/.epochfs/status.json") and "/" in at:  # the mount is above its datasets
            at = at[:at.rindex("/")]
        try:
            with open(f"{at}/.epochfs/status.json", "rb") as f:
                why = json.loads(f.read()).get("last_refused_name") or ""
        except (OSError, ValueError):
            why = ""
        return Failed(MOUNT, why if name in why else f"{folder}: {os.strerror(errno.ENOENT)}; the mount's log says why")

    def _batches(self, folder: str) -> list[str]:
        """The files of batches of a folder, which its names number, beginning with 0."""
        try:
            found = sorted((e.name for e in os.scandir(folder) if re.fullmatch(r"[0-9]{6,20}\.npz", e.name)), key=lambda n: int(n[:-4]))
        except OSError as e:
            raise self._refused(folder) if e.errno == errno.ENOENT else failed(e, folder) from e
        if found and int(found[-1][:-4]) + 1 != len(found):
            raise bad(f"{folder}: expected batches 0 to {int(found[-1][:-4])}, got {len(found)} of them")
        return [f"{folder}/{name}" for name in found]

    def _read(self, path: str, source: int | None) -> tuple[Batch, str]:
        """A batch, and its name for messages. source: that of a mix whose list is read; its numbers become those of the mix."""
        try:
            size = os.stat(path).st_size
            batch = Batch(path, self.field, self.members, self.plan["unit"])
        except BadBatchError as e:
            raise bad(str(e)) from e
        except OSError as e:
            raise failed(e, path) from e
        name = path[len(self.folder) + 1:] if path.startswith(f"{self.folder}/") else path
        if self.mix and batch.n:
            sources = batch.source if source is None else np.full(batch.n, source)
            count = np.array(self.mix.count, np.uint64)
            good = (sources >= 0) & (sources < len(count))
            if not good.all() or (batch.number >= count[sources]).any():
                raise bad(f"{name}: expected samples of the mix's sources, got others")
            batch.number = batch.number + np.array(self.mix.first, np.uint64)[sources]
        self.done += size
        self.progress.show(min(self.done, self.total), self.total)
        return batch, name

    def _read_members(self) -> None:
        """Which members a mix has of its sources: those of a batch; the plan itself may have none."""
        for folder in (self._npz(self.plan["name"]), f"{self.folder}/batches/batch=1/npz"):
            path = f"{folder}/000000.npz"
            if os.path.exists(path):
                names = read_npz(path)
                self.members = {name for name in names if name != "key" and not is_frame(names, name)}
                return
        raise Failed(MOUNT, f"{path}: {os.strerror(errno.ENOENT)}")

    def _read_list(self) -> None:
        """In the stored order of the dataset, or of each source of a mix."""
        folders = self.mix.folders if self.mix else [self._npz(self.plan["list"])]
        batches = [(path, k) for k, folder in enumerate(folders) for path in self._batches(folder)]
        self.total = sum(os.stat(path).st_size for path, _ in batches)
        for path, k in batches:
            self.tally.add_to_list(*self._read(path, k))
        self.tally.end_list()

    def _check_budget(self, batch: Batch, name: str) -> None:
        """A batch of several samples holds its budget, where its lengths are known."""
        longest = 0
        if self.plan["budget"] and batch.n > 1:
            longest = batch.longest or longest_of(batch.arrays, self.plan["length"])
        cost = longest + (longest * longest * 1e6 // self.plan["quad"] if self.plan["quad"] else 0)
        if longest and batch.n * cost > self.plan["budget"] / 1e6:
            self.tally.fault(f"{name}: expected at most {self.plan['budget'] / 1e6:.17g} of {self.plan['length']}, "
                             f"got {batch.n:g} times {cost:g}")

    def _read_epoch(self, rule: Rule) -> int:
        """All batches of the ranks. Returns how many."""
        plan, mix, n = self.plan, self.mix, 0
        size = plan["classes"] * plan["of_class"]
        # Batches of classes, of all ranks, before positions that limit= cuts, or that tail=wrap repeats.
        whole = rule.positions // size if size else 0
        shares = mix.watch(self.position, rule.positions) if mix and plan["ranks"] == 1 and not plan["by_length"] else None
        if shares:
            next(shares)
        for rank in range(plan["ranks"]) if plan["all_ranks"] else (plan["rank"],):
            words = [f"rank={rank}of{plan['ranks']}" if w.startswith("rank=") else w for w in plan["name"].split(",")]
            for i, path in enumerate(self._batches(self._npz(",".join(words)))):
                batch, name = self._read(path, None)
                self.tally.add(batch, name)
                self._check_budget(batch, name)
                if i * plan["ranks"] + rank < whole:
                    self.tally.check_runs(batch, name, plan["classes"], plan["of_class"])
                for place, source in enumerate(batch.source.tolist()):
                    if shares and not shares.send(source):
                        self.tally.fault(f"{name}: place {place}: source {source} has not the share of its weight")
                n += 1
        return n

    def run(self) -> int:
        """Read everything, print what was found. Returns the exit code."""
        plan, tally = self.plan, self.tally
        elements = "units" if plan["unit"] else "samples"
        try:
            if self.mix:
                self._read_members()
            self._read_list()
            rule = Rule(plan, tally, self.mix)
            self.total += self.total // rule.places * rule.read if rule.places else 0
            batches = self._read_epoch(rule)
            self.done = self.total
        finally:
            self.progress.show(min(self.done, self.total), self.total, ends=True)
        rule.cut(plan, tally.elements)
        if tally.elements != rule.read:
            tally.fault(f"expected {rule.read} {elements} in the epoch, got {tally.elements}")
        for k in range(len(self.mix.first) if self.mix else 0):
            compare_source(self.mix, k, self.position, rule, tally)  # type: ignore[arg-type]
        if not self.mix:
            compare(plan, rule, tally)
        epoch = f", epoch {plan['epoch']}" if plan["has_epochs"] else ""
        if tally.faults:
            print("\n".join(tally.shown), file=sys.stderr)
            raise bad(f"{self.folder}: {plan['name']}{epoch}: {tally.faults} fault{'s' if tally.faults > 1 else ''}")
        least, most = (int(tally.seen.min()), int(tally.seen.max())) if len(tally.seen) else (0, 0)
        print(f"{plan['name']}{epoch}{', all ranks' if plan['all_ranks'] and plan['ranks'] > 1 else ''}: {rule.read} {elements} in "
              f"{batches} batch{'es' if batches != 1 else ''}, of the {rule.places} of the list each {how_often(least, most)}; all "
              f"equal to the stored order; SHA-256 of the epoch {tally.sha256()}")
        return DONE


def how_often(least: int, most: int) -> str:
    """ "once", "2 or 3 times"."""
    if most == 1:
        return "once" if least else "at most once"
    return f"{most} times" if least == most else f"{least} {'or' if most - least == 1 else 'to'} {most} times"


def main(mountpoint: str) -> int:
    """Run the audit that the command asks for on stdin. Returns its exit code."""
    try:
        return Audit({"mountpoint": mountpoint, **json.load(sys.stdin)}).run()
    except Failed as e:
        code, reason = e.code, str(e)
    except BadBatchError as e:
        code, reason = AUDIT, str(e)
    except OSError as e:
        code, reason = MOUNT, f"{e.filename or mountpoint}: {e.strerror or e}"
    except MemoryError:
        code, reason = SYSTEM, os.strerror(errno.ENOMEM)
    print(f"epochfs: {reason}", file=sys.stderr)
    return code
