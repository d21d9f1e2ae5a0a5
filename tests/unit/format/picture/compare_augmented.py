#!/usr/bin/python3
"""Augmented pictures against the arrays of a reference in Python, made with other code: compare_augmented.py EPOCHFS-AUGMENTED

Needs $SHARED_DATA/augment. Arrays of the field `image`; tests/mount/pictures/case-augment.py compares the other fields."""

import json
import os
import subprocess
import sys

import numpy as np

TOOL, FOLDER = sys.argv[1], os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "augment")
if not os.path.isdir(FOLDER):
    print("skipped: ../shared/data/augment")
    sys.exit(77)
arrays = np.load(f"{FOLDER}/expected.npz")
with open(f"{FOLDER}/EXPECTED-augment.json", encoding="utf-8") as f:
    cases = [case for case in json.load(f)["cases"] if case["field"] == "image"]
compared = 0
for case in cases:
    size, _, short = case["size"].partition("of")
    height, width = map(int, size.split("x"))
    for want, sample in zip(arrays[case["array"]], case["samples"]):
        numbers = [case["seed"], sample["epoch"], sample["index"], sample["position"]]
        made = subprocess.run([TOOL, str(height), str(width), short or "0", case["recipe"], *map(str, numbers), f"{FOLDER}/{case['picture']}"],
                              capture_output=True, check=True).stdout
        got = np.frombuffer(made[:-16], np.uint8).reshape(height, width, 3)
        assert np.array_equal(got, want), f"{case['picture']} {case['recipe']} {numbers}: {np.argwhere(got != want)[:3]}"
        compared += 1
print(f"{compared} arrays of {len(cases)} cases are equal")
assert compared >= 100
