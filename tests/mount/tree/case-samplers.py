#!/usr/bin/python3
# needs: python3-torch
"""The samplers of MindSpore and PyTorch, each with the plan of docs/spec/plans.md that shows the same samples as often. PyTorch's
run here; MindSpore's are written out from what its documentation and sources say."""

import collections
import os
import random
import re

import numpy as np
import torch
from torch.utils.data import sampler as torch_sampler
from torch.utils.data.distributed import DistributedSampler

from lib import PRIVATE, SOURCE, equal, mounted, path, write

HERE = os.path.dirname(os.path.abspath(__file__))
N, RANKS, DRAWS, EPOCHS = 23, 4, 40, 60
SOME = [5, 17, 5, 2, 21, 0, 9]
WEIGHTS = [float(i * 5 % 7) for i in range(N)]
LABELS = [i * i % 5 for i in range(N)]  # 0, 1 and 4
write("data.libsvm", "".join(f"{LABELS[i]}:{WEIGHTS[i]:g} 1:{i}\n" for i in range(N)).encode())
with open(f"{PRIVATE}/some", "w", encoding="ascii") as some:
    some.writelines(f"#{i}\n" for i in SOME)
with open(os.path.join(HERE, "../../../docs/spec/plans.md"), encoding="utf-8") as page:
    PAGE = page.read().split("## Samplers of MindSpore")[1]
used = set()


def ids(words, epoch=0):
    """The samples of an epoch of the plan, which the page must have."""
    used.add(re.sub(r"rank=\d+of\d+", "rank=KofR", words))
    plan = "batch=1" + (f",{words}" if words else "")
    plan = plan.replace("batch=1,batch=", "batch=")
    folder = path("data.libsvm/batches", plan, *([f"epoch={epoch}"] if "seed" in plan else []), "npy")
    files = sorted(f for f in os.listdir(folder) if f.endswith(".index.npy"))
    return [int(x) for f in files for x in np.load(f"{folder}/{f}")]


def all_ranks(words, epoch=0):
    return [ids(f"rank={k}of{RANKS},{words}".rstrip(","), epoch) for k in range(RANKS)]


def same(got, want, what):
    equal(sorted(got), sorted(want), what)


def times(samples):
    """How many samples come once, twice, ..."""
    return collections.Counter(collections.Counter(samples).values())


def flat(lists):
    return [x for one in lists for x in one]


def check_means(words, want, draws, what):
    """Over epochs each sample comes as often as its share says, and in one floor or ceil of that; want: such epochs of
    another sampler, whose counts must be near the same means."""
    ours, theirs = collections.Counter(), collections.Counter()
    total = sum(WEIGHTS)
    share = [w / total for w in WEIGHTS] if "weight" in words else [1 / N] * N
    for epoch in range(EPOCHS):
        shown = ids(words, epoch)
        equal(len(shown), draws, what)
        counts = collections.Counter(shown)
        for i in range(N):
            assert abs(counts[i] - draws * share[i]) < 1, (what, i, counts[i])
        ours.update(shown)
        theirs.update(want(epoch))
    for i in range(N):
        mean = draws * share[i] * EPOCHS
        assert abs(ours[i] - mean) < 4.5 * (EPOCHS / 4) ** 0.5, (what, i, ours[i], mean)
        assert abs(theirs[i] - mean) < 5.5 * (mean + 1) ** 0.5, (what, i, theirs[i], mean)


# ---- MindSpore's, as plans.md of its facts has them: from its sources ----

def ms_sequential(start, samples):
    return list(range(start, min(start + samples, N)))


def ms_distributed(shard, even=True):
    each = -(-N // RANKS) if even else len(range(shard, N, RANKS))
    return [(RANKS * k + shard) % N for k in range(each)]


def ms_pk(k):
    """k of each class, with replacement, classes in ascending order."""
    rng = random.Random(3)
    return [rng.choice([i for i in range(N) if LABELS[i] == c]) for c in sorted(set(LABELS)) for _ in range(k)]


def check_ordered():
    equal(ids(""), ms_sequential(0, N), "ms.SequentialSampler")
    equal(ids(""), list(torch_sampler.SequentialSampler(range(N))), "torch.SequentialSampler")
    equal(ids("take=3:13"), ms_sequential(3, 10), "ms.SequentialSampler(start_index=3, num_samples=10)")
    equal(ids("only=some"), SOME, "ms.SubsetSampler")
    equal(all_ranks("tail=wrap"), [ms_distributed(k) for k in range(RANKS)], "ms.DistributedSampler(shuffle=False)")
    equal(all_ranks(""), [ms_distributed(k, False) for k in range(RANKS)], "ms.DistributedSampler(even_dist=False)")
    for drop, words in ((False, "tail=wrap"), (True, "tail=drop")):
        want = [list(DistributedSampler(range(N), RANKS, k, shuffle=False, drop_last=drop)) for k in range(RANKS)]
        equal(all_ranks(words), want, f"torch.DistributedSampler(shuffle=False, drop_last={drop})")


def check_shuffled():
    for epoch in range(3):
        same(ids("seed=7", epoch), torch_sampler.RandomSampler(range(N)), "torch.RandomSampler")
        same(ids("only=some,seed=7", epoch), torch_sampler.SubsetRandomSampler(SOME), "SubsetRandomSampler")
        want = list(torch_sampler.RandomSampler(range(N), num_samples=10))
        equal(times(ids("seed=7,limit=10", epoch)), times(want), "torch.RandomSampler(num_samples=10)")
        # More than there are: whole permutations, then a part of one.
        more = [x for _ in range(DRAWS // N + 1) for x in torch_sampler.RandomSampler(range(N))][:DRAWS]
        equal(times(ids(f"seed=7,draw={DRAWS}:uniform", epoch)), times(more), "torch.RandomSampler(num_samples=40)")
        for drop, words in ((False, "seed=7,tail=wrap"), (True, "seed=7,tail=drop")):
            found = [DistributedSampler(range(N), RANKS, k, seed=7, drop_last=drop) for k in range(RANKS)]
            for one in found:
                one.set_epoch(epoch)
            want, got = [list(one) for one in found], all_ranks(words, epoch)
            equal([len(r) for r in got], [len(r) for r in want], "lengths of ranks")
            equal(times(flat(got)), times(flat(want)), f"torch.DistributedSampler(drop_last={drop})")


def check_drawn():
    torch.manual_seed(5)
    check_means(f"seed=7,draw={DRAWS}:uniform", lambda epoch: torch_sampler.RandomSampler(
        range(N), replacement=True, num_samples=DRAWS), DRAWS, "RandomSampler(replacement=True)")
    check_means(f"seed=7,draw={DRAWS}:weight", lambda epoch: torch_sampler.WeightedRandomSampler(
        WEIGHTS, DRAWS), DRAWS, "WeightedRandomSampler(replacement=True)")
    # Without replacement: no sample twice, where no share is above 1; and none of weight 0.
    for epoch in range(20):
        got, want = ids("seed=7,draw=8:weight", epoch), list(torch_sampler.WeightedRandomSampler(WEIGHTS, 8, replacement=False))
        equal(times(got), times(want), "WeightedRandomSampler(replacement=False)")
        equal([i for i in got + want if not WEIGHTS[i]], [], "of weight 0")


def check_classes():
    classes = len(set(LABELS))
    for k in (2, 3):
        want = [LABELS[i] for i in ms_pk(k)]
        for epoch in range(3):
            got = [LABELS[i] for i in ids(f"batch={classes * k},seed=7,classes={classes}x{k},limit={classes * k}", epoch)]
            same(got, want, "ms.PKSampler")
            equal([len(set(got[i:i + k])) for i in range(0, len(got), k)], [1] * classes, "class after class")


with mounted(SOURCE, f"list=some={PRIVATE}/some"):
    check_ordered()
    check_shuffled()
    check_drawn()
    check_classes()
missing = [words for words in used if words and f"`{words}`" not in PAGE]
equal(missing, [], "plans that docs/spec/plans.md lacks")
