#!/usr/bin/python3
# needs: dataset-fashion-mnist
# plain: Python works with what other cases read
"""docs/frameworks.md: the source that Grain and MindSpore read; and each block, of docs/pytorch.md also, whose framework is
installed for /usr/bin/python3. Debian has none of them."""

import importlib.util
import io
import os
import subprocess
import sys
import wave

import numpy as np

import epochfs
import pages
from lib import PRIVATE, equal, run
from page_blocks import take

FASHION = "/usr/share/datasets/fashion-mnist"
with open(f"{PRIVATE}/source.py", "w", encoding="utf-8") as f:
    f.write(take("docs/frameworks.md", "# source.py"))
sys.path.insert(0, PRIVATE)
from source import Source  # noqa: E402

source = Source("batch=1000,seed=7")
expected = epochfs.load(FASHION)["train"].batches("batch=1000,seed=7").read(59)
equal(len(source), 60, "batches")
for found, name in zip(source[59], ("image", "label")):
    equal(np.array_equal(found, expected[name]), True, name)


def framework(module, block, after=""):
    """Run a block, and lines that check it: of a training, its last line is a small loss."""
    if not importlib.util.find_spec(module):
        return
    done = subprocess.run([sys.executable, "-c", block + after], cwd=PRIVATE, check=False, stdout=subprocess.PIPE, text=True)
    equal(done.returncode, 0, module)
    if not after:
        equal(0 < float(done.stdout.split()[-1]) < 2, True, f"the loss of {module}: {done.stdout}")


framework("accelerate", take("docs/pytorch.md", "accelerator = accelerate.Accelerator()"))
framework("jax", take("docs/frameworks.md", "import epochfs, jax"))
framework("lightning", take("docs/frameworks.md", "lightning.LightningModule"))
framework("transformers", take("docs/frameworks.md", "transformers.TrainingArguments"))
framework("mindspore", take("docs/frameworks.md", "import mindspore"))
framework("tensorflow", take("docs/frameworks.md", "from_generator"))
framework("grain", take("docs/frameworks.md", "import grain"), """
import numpy as np, epochfs
for found, wanted in zip(data, Source('batch=128,seed=7')):
    for a, b in zip(found, wanted):
        assert np.array_equal(np.asarray(a), b)
""")
if importlib.util.find_spec("tensorflow"):
    run("mount", FASHION, "/mnt")
    framework("tensorflow", take("docs/frameworks.md", "TFRecordDataset"), """
import numpy as np
assert np.array_equal(image, np.load(files[-1].replace('tfrecord', 'npz'))['image'])
""")
    run("umount", "/mnt")
if importlib.util.find_spec("lhotse"):
    sound = io.BytesIO()
    with wave.open(sound, "wb") as w:
        w.setparams((1, 2, 8000, 0, "NONE", ""))
        w.writeframes(bytes(16000))
    world = pages.World()
    for name, data in (("a.wav", sound.getvalue()), ("wav.scp", b"u1 a.wav\n"), ("text", b"u1 HELLO\n"), ("utt2spk", b"u1 s\n")):
        world.file(f"/data/kaldi/{name}", data)
    run("mount", "/data/kaldi", "/mnt")
    framework("lhotse", take("docs/frameworks.md", "from lhotse"), """
assert [(c.id, c.duration, c.supervisions[0].text) for c in cuts] == [('u1', 1.0, 'HELLO')]
""")
    run("umount", "/mnt")
