#!/usr/bin/python3
"""How many samples each class has: `epochfs info`, its --json and --check, and dataset.json."""

import json
import os

import numpy as np

from lib import SOURCE, contains, equal, idx_bytes, mounted, path, run, text, write

LABEL = np.repeat([3, 0, 250, 7], [5, 1, 90, 4]).astype(np.uint8)
write("idx/a-images", idx_bytes(np.zeros((100, 2, 2), np.uint8)))
write("idx/a-labels", idx_bytes(LABEL))
write("rows/b.libsvm", b"1 1:2\n-1 1:3\n1 2:4\n")
write("rows/c.libsvm", b"0.5 1:2\n-1 1:3\n")
write("last/a-images", idx_bytes(np.zeros((2 ** 18 + 1, 1, 1), np.uint8)))  # more than is read at once
write("last/a-labels", idx_bytes(np.append(np.arange(2 ** 18) % 2, 9).astype(np.uint8)))
for i in range(7):
    write(f"folders/train/{'cat' if i < 2 else 'dog'}/{i}.jpg", b"x" * (i + 1))

contains(run("info", f"{SOURCE}/idx"), "    classes  4 of label, the least 1 (0), the most 90 (250)\n")
found = json.loads(run("info", "--json", f"{SOURCE}/idx"))["datasets"][0]["class_counts"]
equal((found["classes"], found["least"], found["most"]),
      (4, {"value": 0, "samples": 1}, {"value": 250, "samples": 90}), "counts")
equal([(c["value"], c["samples"]) for c in found["each"]], [(0, 1), (3, 5), (7, 4), (250, 90)], "each class")

contains(run("info", f"{SOURCE}/last"), "    classes  3 of label, the least 1 (9), the most 131072 (0)\n")

os.makedirs(f"{SOURCE}/huge")
np.savez(f"{SOURCE}/huge/d.npz", x=np.zeros((2, 2)), label=np.array([1, 2 ** 63], np.uint64))
contains(run("info", f"{SOURCE}/huge"), "    classes  of field label: sample 1 (d.npz:", "expected a number below 2^63, got 9223372036854775808")

contains(run("info", f"{SOURCE}/rows"), "    classes  of label; --check counts them\n")
checked = run("info", "--check", f"{SOURCE}/rows/b.libsvm")
contains(checked, "    classes  2 of label, the least 1 (-1), the most 2 (1)\n")
equal("classes" in run("info", "--check", f"{SOURCE}/rows/c.libsvm"), False, "numbers to predict are no classes")

contains(run("info", f"{SOURCE}/folders"), "    classes  2 of label, the least 2 (0 cat), the most 5 (1 dog)\n")
with mounted(SOURCE):
    page = json.loads(text(path("folders/train/dataset.json")))
    equal(page["class_counts"]["each"], [{"value": 0, "name": "cat", "samples": 2}, {"value": 1, "name": "dog", "samples": 5}],
          "dataset.json of class folders")
    equal("class_counts" in json.loads(text(path("idx/a/dataset.json"))), False, "not where labels would be read")
    equal(os.path.isdir(path("idx/a/batches")), True, "a dataset")
