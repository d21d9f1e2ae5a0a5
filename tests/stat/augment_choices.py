#!/usr/bin/python3
# needs: python3-torchvision python3-scipy
# slow: draws 25,000 boxes with torchvision
"""Do augmented pictures have the crops, flips, erased boxes and policies that torchvision's transforms would give?
augment_choices.py EPOCHFS-AUGMENT

Boxes: Kolmogorov-Smirnov of 100,000 of ours and 25,000 of torchvision's, each of four coordinates. Flips and policies: chi-square
of 100,000 against the probabilities of torchvision's tables. Seeds are fixed, so that every run prints the same figures.
Each test runs a second time with a planted bias, one sample in 20 is the first one's, and must fail then.
"""
import subprocess
import sys

import numpy as np
import torch
from scipy import stats
from torchvision.transforms import autoaugment, transforms

TOOL, SAMPLES, THEIRS = sys.argv[1], 100_000, 25_000
SIZES = ((375, 500), (100, 640), (32, 32))
KS_LIMIT = 1.36  # 5 %
Z_LIMIT = 4
OPS = ("Identity ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness Posterize Solarize "
       "AutoContrast Equalize Invert").split()
failed = []


def choices(height, width):
    """{what: array [samples, ...]}"""
    done = subprocess.run([TOOL, str(SAMPLES), str(height), str(width)], stdout=subprocess.PIPE, check=True)
    lines = np.frombuffer(done.stdout, np.int32).reshape(SAMPLES, -1)
    steps = lines[:, 11:].reshape(SAMPLES, -1, 4)
    return {"crop": lines[:, :4], "flips": lines[:, 4:6], "erased": lines[:, 6], "erase": lines[:, 7:11],
            "trivial": steps[:, :1], "rand": steps[:, 1:3], "imagenet": steps[:, 3:5], "cifar10": steps[:, 5:7],
            "svhn": steps[:, 7:9]}


def planted(values):
    biased = values.copy()
    biased[::20] = values[0]
    return biased


def judge(name, found, limit, biased):
    """The figure must be below the limit, and above it with the bias."""
    good = found < limit <= biased
    print(f"{name:40} {found:8.3f} limit {limit}, with a planted bias {biased:.1f}{'' if good else '  FAILED'}")
    if not good:
        failed.append(name)


def ks(name, ours, theirs):
    def figure(values):
        return stats.ks_2samp(values, theirs, mode="asymp").statistic * (len(values) * len(theirs) / (len(values) + len(theirs))) ** 0.5

    judge(f"ks {name}", figure(ours), KS_LIMIT, figure(planted(ours)))


def chi_square(name, cells, share):
    """cells: of each sample. share: {cell: its probability}; those that are rare count as one."""
    often = [cell for cell, p in share.items() if p * SAMPLES >= 10]
    parts = [share[cell] for cell in often]
    if 1 - sum(parts) > 1e-9:
        parts.append(1 - sum(parts))
    place = {cell: i for i, cell in enumerate(often)}

    def figure(values):
        unknown = set(values) - set(share)
        if unknown:
            raise AssertionError(f"{name}: {unknown} cannot happen")
        counts = np.bincount([place.get(value, len(often)) for value in values], minlength=len(parts))
        chi2, freedom = stats.chisquare(counts, np.array(parts) * SAMPLES)[0], len(parts) - 1
        return (chi2 - freedom) / (2 * freedom) ** 0.5

    biased = list(cells)
    biased[::20] = [cells[0]] * len(biased[::20])
    judge(f"chi-square {name}", figure(cells), Z_LIMIT, figure(biased))


def boxes():
    for height, width in SIZES:
        torch.manual_seed(1)
        ours, picture = choices(height, width), torch.empty(3, height, width)
        theirs = np.array([transforms.RandomResizedCrop.get_params(picture, (0.08, 1), (3 / 4, 4 / 3)) for _ in range(THEIRS)])
        for i, what in enumerate(("top", "left", "height", "width")):
            ks(f"crop of {height} x {width}, {what}", ours["crop"][:, i], theirs[:, i])
    erased = [transforms.RandomErasing.get_params(picture, (0.02, 0.33), (0.3, 3.3), [0]) for _ in range(THEIRS)]
    theirs = np.array([box[:4] for box in erased if box[2:4] != (height, width)])
    mine = ours["erase"][ours["erased"] == 1]
    for i, what in enumerate(("top", "left", "height", "width")):
        ks(f"erased of {height} x {width}, {what}", mine[:, i], theirs[:, i])
    return ours


def steps_of(ours, name):
    return [tuple(tuple(step) for step in sample if step[0] >= 0) for sample in ours[name].tolist()]


def flips(ours):
    pairs = list(map(tuple, ours["flips"].tolist()))
    chi_square("flip and vflip", pairs, {(a, b): 1 / 4 for a in (0, 1) for b in (0, 1)})
    follow = list(zip(ours["flips"][:, 0].tolist(), np.roll(ours["flips"][:, 0], -1).tolist()))
    chi_square("flips that follow one another", follow, {(a, b): 1 / 4 for a in (0, 1) for b in (0, 1)})
    coins = [(int(h), int(a)) for (h, _), a in zip(ours["flips"], ours["erased"])]
    part = ours["erased"].mean()
    chi_square("flip and erase", coins, {(a, b): (part if b else 1 - part) / 2 for a in (0, 1) for b in (0, 1)})


def policies(ours):
    chosen = list(autoaugment.TrivialAugmentWide()._augmentation_space(31))
    assert chosen == OPS[:14] and list(autoaugment.RandAugment()._augmentation_space(31, (9, 9))) == chosen, chosen
    one = 1 / (14 * 31 * 2)
    chi_square("trivial", steps_of(ours, "trivial"),
               {((op, level, 31, sign),): one for op in range(14) for level in range(31) for sign in (0, 1)})
    pairs = [(op, 9, 31, sign) for op in range(14) for sign in (0, 1)]
    chi_square("rand", steps_of(ours, "rand"), {(a, b): 1 / 28 ** 2 for a in pairs for b in pairs})
    for policy in autoaugment.AutoAugmentPolicy:
        share = {}
        for pair in autoaugment.AutoAugment(policy).policies:
            for done in range(4):
                p, kept = 1 / 25, []
                for i, (op, chance, level) in enumerate(pair):
                    happens = done >> i & 1
                    p *= chance if happens else 1 - chance
                    kept += [(OPS.index(op), level or 0)] if happens else []
                for signs in range(1 << len(kept)):
                    key = tuple((op, level, 10, signs >> i & 1) for i, (op, level) in enumerate(kept))
                    share[key] = share.get(key, 0) + p / (1 << len(kept))
        share = {key: p for key, p in share.items() if p > 0}
        chi_square(f"auto:{policy.value}", steps_of(ours, policy.value), share)


def main():
    ours = boxes()
    flips(ours)
    policies(ours)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


main()
