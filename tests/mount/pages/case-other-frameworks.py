#!/usr/bin/python3
# needs: dataset-fashion-mnist
# plain: Python works with what other cases read
"""docs/other-frameworks.md: the source that Grain and MindSpore read; and each block whose framework is installed for
/usr/bin/python3. Debian has none of the frameworks."""

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
    f.write(take("docs/other-frameworks.md", "# source.py"))
sys.path.insert(0, PRIVATE)
from source import Source  # noqa: E402

source = Source("batch=1000,seed=7")
expected = epochfs.load(FASHION)["train"].batches("batch=1000,seed=7").read(59)
equal(len(source), 60, "batches")
for found, name in zip(source[59], ("image", "label")):
    equal(np.array_equal(found, expected[name]), True, name)


def framework(module, block, after):
    """Run a block, and lines that compare what it has made."""
    if importlib.util.find_spec(module):
        equal(subprocess.run([sys.executable, "-c", block + after], cwd=PRIVATE, check=False).returncode, 0, module)


COMPARE = """
import numpy as np, epochfs
for wanted in epochfs.load('/usr/share/datasets/fashion-mnist')['train'].batches('batch=128,seed=7', fields=['image', 'label']):
    found = next(data)
    found = [found[k] for k in ('image', 'label')] if isinstance(found, dict) else found
    for a, b in zip(found, wanted.values()):
        assert np.array_equal(np.asarray(a), b)
"""
framework("grain", take("docs/other-frameworks.md", "import grain"), COMPARE)
framework("mindspore", take("docs/other-frameworks.md", "import mindspore"), COMPARE)
framework("tensorflow", take("docs/other-frameworks.md", "from_generator"), "\ndata = data.as_numpy_iterator()" + COMPARE)
if importlib.util.find_spec("tensorflow"):
    run("mount", FASHION, "/mnt")
    framework("tensorflow", take("docs/other-frameworks.md", "TFRecordDataset"), """
assert np.array_equal(image, np.load(files[-1].replace('tfrecord', 'npz'))['image'])
""".replace("assert", "import numpy as np\nassert"))
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
    framework("lhotse", take("docs/other-frameworks.md", "from lhotse"), """
assert [(c.id, c.duration, c.supervisions[0].text) for c in cuts] == [('u1', 1.0, 'HELLO')] or cuts[0].duration == 1.0
""")
    run("umount", "/mnt")
