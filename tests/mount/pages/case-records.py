#!/usr/bin/python3
# needs: python3-pil
"""docs/tables.md, shards.md, images.md and speech.md, done as by
a reader with small files of those names."""

import io
import os
import shutil

import numpy as np
from PIL import Image

import kaldi_dirs
import mindrecord_model
import pages
import parquet_model
import tfrecord_model
from lib import SOURCE, write
from tar_model import shard

rng = np.random.default_rng(6)
world = pages.World()


def jpeg(side=24):
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8)).save(out, "jpeg")
    return out.getvalue()


PICTURES = [jpeg() for _ in range(5)]


def records(n):
    return b"".join(bytes([i % 10]) + rng.bytes(3072) for i in range(n))


for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
    world.file(f"cifar-10-batches-bin/{name}", records(60))
world.run("docs/tables.md", "CIFAR", then={"batch['image']": "assert x.shape == (128, 32, 32, 3) and x.dtype == 'u1' and y.shape == (128,)"})

schema = {"label": {"type": "int64"}, "image": {"type": "bytes"}}
names = [f"x.mindrecord{i}" for i in range(4)]
for i, name in enumerate(names):
    rows = [{"label": k, "image": PICTURES[k % 5]} for k in range(20 * i, 20 * i + 20)]
    world.file(f"train/{name}", mindrecord_model.make(schema, rows, shard=i, addresses=names))
    world.file(f"train/{name}.db", b"SQLite format 3\0" + bytes(84))
world.run("docs/shards.md", "MindRecord", then={"image_offsets": "assert label.shape == (64,) and first[:2] == b'\\xff\\xd8'"})

nodes = [("image", "optional", [("bytes", "optional", parquet_model.BYTES), ("path", "optional", parquet_model.BYTES)]),
         ("label", "required", parquet_model.INT64)]
for i in range(2):
    rows = [{"image": {"bytes": PICTURES[k % 5], "path": None}, "label": k} for k in range(40 * i, 40 * i + 40)]
    world.file(f"data/train-{i:05}-of-00002.parquet", parquet_model.make(nodes, rows))
world.run("docs/tables.md", "Parquet", then={"image_offsets": "assert label.shape == (64,) and first[:2] == b'\\xff\\xd8'"})

os.sys.path.insert(0, os.path.join(os.environ["CASES"], "recordio"))
import recordio_model  # noqa: E402

world.file("train.rec", b"".join(recordio_model.record(recordio_model.picture(float(i % 3), i, PICTURES[i % 5])) for i in range(100)))
world.run("docs/shards.md", "RecordIO", then={"image_offsets": "assert label.shape == (64,) and label.dtype == 'f4' and first[:2] == b'\\xff\\xd8'"})

world.file("train.tfrecord", b"".join(tfrecord_model.frame(tfrecord_model.example(
    label=tfrecord_model.integers(i), image=tfrecord_model.strings(PICTURES[i % 5]))) for i in range(130)))
world.run("docs/shards.md", "TFRecord", then={"train.tfrecord": "assert images[0][:2] == b'\\xff\\xd8' and epoch == 2"}, before="epochfs mount train.tfrecord /mnt\n")

for s in range(3):
    world.file(f"shards/set-{s}.tar", shard([(f"{100 * s + i:06}.{ext}", data) for i in range(100) for ext, data in
                                             (("jpg", PICTURES[i % 5]), ("cls", b"%d" % (i % 7)))]))
world.web({"imagenet": world.folder("shards")})
world.run("docs/shards.md", "WebDataset", then={"cp /mnt/all": "test -s 000017.jpg", "first = PIL": "assert first[0].size == (24, 24) and len(batch['key']) == 256"})

for i in range(64):
    world.file(f"/data/flowers/train/{('rose', 'tulip')[i % 2]}/{i}.jpg", PICTURES[i % 5])
os.makedirs("/mnt/flowers")
world.run("docs/images.md", "Images as arrays", then={"batch['image']": "assert x.shape == (32, 224, 224, 3) and y.shape == (32,) and y.dtype == 'i8'"})
world.run("docs/images.md", "Random crops and flips", then={"image_norm": "assert x.shape == (32, 3, 224, 224) and x.dtype == 'f4' and y.dtype == 'i8'"})
os.rmdir("/mnt/flowers")

matrices = [(f"utt{i + 1}", kaldi_dirs.fm(rng.normal(size=(20 + i, 13)).astype(np.float32))) for i in range(40)]
kaldi_dirs.table("train/feats", matrices)
kaldi_dirs.table("train/cmvn", [(key, kaldi_dirs.fm(np.ones((2, 14), np.float32))) for key, _ in matrices])
write("train/text", "".join(f"{key} one two\n" for key, _ in matrices).encode())
write("train/utt2spk", "".join(f"{key} {key}\n" for key, _ in matrices).encode())
world.folder("data")
shutil.move(f"{SOURCE}/train", world.folder("data"))
world.run("docs/speech.md", "Read a Kaldi data directory", then={"cat /mnt/all": "test \"$(cat /mnt/all/samples/txt/utt1.text.txt)\" = 'one two'",
                            "keys = open": "assert x.shape[0] == 32 and x.shape[2] == 13 and len(keys) == 32"})
