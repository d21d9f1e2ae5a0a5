#!/usr/bin/python3
# needs: python3-xgboost
"""docs/tables.md and text.md, done as by a reader with small files of those names."""

import json
import tempfile

import numpy as np
import xgboost

import pages
from page_blocks import take
from tokens_model import llmc

ROWS = 3000
rng = np.random.default_rng(5)
world = pages.World()
numbers = rng.normal(size=(ROWS, 28)).round(3)
world.file("higgs.csv", "".join(f"{i % 2}," + ",".join(map(str, row)) + "\n" for i, row in enumerate(numbers)).encode())
world.run("docs/tables.md", "CSV", then={"higgs.csv/": "assert x.shape == (1024, 28) and x.dtype == 'f4' and batch['label'].shape == (1024,)"})

lines = [f"{i % 2} {i % 50}:0.5 {50 + i % 9}:{i}\n" for i in range(ROWS)]
world.file("train.txt", "".join(lines).encode())
begin = np.cumsum([0, *map(len, lines)])  # of each line, and the size
step = -(-begin[-1] // 8)  # dmlc's InputSplit: worker 2 has what begins behind 2 of these, and not behind 3
share = [i for i in range(ROWS) if 2 * step < begin[i] <= 3 * step]
world.run("docs/tables.md", "libsvm text", then={"sed -n 1p": "test \"$(sed -n 1p /mnt/train.txt/samples/svm/000017.svm)\" = '1 17:0.5 58:17'",
                             "import xgboost": "read = rows.get_data()[:, 50:].sum(axis=1).A1.tolist()\n"
                             f"assert read == {share} and rows.num_col() == 59, (read[0], read[-1], rows.num_col())",
                             "scipy.sparse": "assert x.shape == (1024, 59) and label.shape == (1024,)"})

with tempfile.NamedTemporaryFile() as made:
    xgboost.DMatrix(numbers, label=np.arange(ROWS)).save_binary(made.name)
    world.file("train.buffer", made.read())
world.run("docs/tables.md", "XGBoost's binary DMatrix", then={"load_npz": "assert x.shape == (1024, 28) and label.shape == (1024,)"})

entry = take("docs/tables.md", "0:3:0.5")
world.file("train.ffm", (entry * ROWS).encode())
world.run("docs/tables.md", "LibFM text", then={"load_npz": "assert x.shape[0] == 1024 and field.dtype == 'u4' and list(field[:3]) == [0, 1, 2]"})

world.file("instructions/train.jsonl", "".join(json.dumps({"text": f"number {i}", "n": i}) + "\n" for i in range(100)).encode())
world.run("docs/text.md", "JSON lines", then={"jsonl/000000": "assert len(rows) == 32 and rows[0]['text'] == f\"number {rows[0]['n']}\""})

tokens = rng.integers(0, 50000, 200 * 1024)
world.file("data/train.bin", llmc(tokens))
world.file("openwebtext/train.bin", tokens.astype("<u2").tobytes())
world.run("docs/text.md", "Token windows", then={"batch['tokens']": "assert tokens.shape == (64, 1025) and tokens.dtype == 'u2' and (x[:, 1:] == y[:, :-1]).all()",
                             "openwebtext": "test -e /mnt/train.bin/samples/npy/000000.tokens.npy"})
