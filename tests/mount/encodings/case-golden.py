#!/usr/bin/python3
"""The same path gives the same bytes on every machine and in every later version: checksums of
files made once from an arithmetic source. A sum here never changes."""

import hashlib
import os
import sys

import numpy as np

from lib import content, equal, idx_bytes, mounted, path, write

IMAGES = (np.arange(30 * 7 * 5) * 37 % 251).astype(np.uint8).reshape(30, 7, 5)
LABELS = (np.arange(30) * 7 % 10).astype(np.uint8)
DATA = ((np.arange(30 * 3) * 1009 - 40000) % 60000 - 30000).astype(np.int16).reshape(30, 3)
write("train-images-idx3-ubyte", idx_bytes(IMAGES))
write("train-labels-idx1-ubyte", idx_bytes(LABELS))
write("other", idx_bytes(DATA))

FOLDERS = ["samples", "batches/batch=8", "batches/batch=8,seed=7/epoch=3",
           "batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0",
           "batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615"]

SUMS = {
    "train/samples/idx":
        "0720d40cf1925c790c50acea02a94620",
    "train/samples/npy":
        "3fe4fafb156c5a3929766f1c7af71583",
    "train/samples/npz":
        "466e8f10fe611e52ee7af019e3f0f4b1",
    "train/samples/pgm":
        "70d944c86ce25d09afd3ee01c8c251b8",
    "train/samples/png":
        "d8267aed0b1abef380f872ec5516540b",
    "train/samples/raw":
        "cafe37f52532811329e34a11a9b1a2a5",
    "train/samples/tar":
        "3b91c57d7c1df075897c4316322a7e2d",
    "train/samples/tfrecord":
        "3fbbe726239ed3d6e1c6f9708a37b34a",
    "train/batches/batch=8/idx":
        "705dc171e16ff07ffb051169e8c608aa",
    "train/batches/batch=8/npy":
        "748233a13c1a7137c58fa35f1b91d96b",
    "train/batches/batch=8/npz":
        "23d3a3c9898bf0dc9e310061ac09f52d",
    "train/batches/batch=8/pgm":
        "2d5328fb335cf8f4a83a71fce93c1861",
    "train/batches/batch=8/png":
        "c7824fdb3e7c6b75cd3dcf809064405c",
    "train/batches/batch=8/raw":
        "45e528d5a47abce2bfc7faca15f553e6",
    "train/batches/batch=8/tar":
        "bbadf0ed2ff36cd04a5fea2554ce09cd",
    "train/batches/batch=8/tfrecord":
        "d8b55cfce601146beff0fede9eb434f6",
    "train/batches/batch=8,seed=7/epoch=3/idx":
        "1a4d90dd51de1497aec827597a6187a1",
    "train/batches/batch=8,seed=7/epoch=3/npy":
        "c35036efb0a9a99ea1cf9fe1b0ee5a68",
    "train/batches/batch=8,seed=7/epoch=3/npz":
        "c97b5b59e8c22e907d9d7af816c2bb69",
    "train/batches/batch=8,seed=7/epoch=3/pgm":
        "d59825f94430ce8898ead9d76bd7be72",
    "train/batches/batch=8,seed=7/epoch=3/png":
        "3ddda5904240c37aec1ae5824e77b926",
    "train/batches/batch=8,seed=7/epoch=3/raw":
        "44fc93ddd0a0d606f3512677387cee66",
    "train/batches/batch=8,seed=7/epoch=3/tar":
        "7eee3844053d6b6c37604a3d42bf7d2c",
    "train/batches/batch=8,seed=7/epoch=3/tfrecord":
        "f1c29a960d2ee59d666bf3b904685c31",
    "train/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/idx":
        "a79b85d144841e14cd784cc304904989",
    "train/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/npy":
        "dcd1a1e68ab4e0dbed9813cb8d7ddad5",
    "train/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/npz":
        "8e653781b39f5ff39f7998c20e933386",
    "train/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/pgm":
        "589b6ae977799ec21a5f24cf4a253677",
    "train/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/png":
        "fba97ede60bd20c55cd659f1ed656eb3",
    "train/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/raw":
        "89138433ea7ce2ceaaa420b34b3776d7",
    "train/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/tar":
        "27af641712286b4f05daf7cf8f5f3192",
    "train/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/tfrecord":
        "70ec1564eac790318c8684785be8f952",
    "train/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/idx":
        "7f8f757c26f4b837b6080c6513719b88",
    "train/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/npy":
        "0f24ab5ca2b393c9953b623b747389aa",
    "train/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/npz":
        "48764575d33ed5a924407d0485b29c0c",
    "train/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/pgm":
        "7d6c26f2905c0d19262018e98291f53d",
    "train/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/png":
        "9642274afe0b070e8d91952905ce4ff0",
    "train/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/raw":
        "0b09a2b336ce75b0f8e8763011999444",
    "train/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/tar":
        "a87ceb5b5db96bde79ac1dd4648fd950",
    "train/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/tfrecord":
        "4acced2305dee7423b96d20bb8df9053",
    "other/samples/idx":
        "ef2fafb817646f7c54c1a92e83fa6add",
    "other/samples/npy":
        "0fd357218a28dbcd35e34bcaabf9770b",
    "other/samples/npz":
        "101181890c110140701b6a18398d0f8b",
    "other/samples/raw":
        "ef4bbe662f09b770fad0990304620ce9",
    "other/samples/tar":
        "189b66d6971d75c218f9480ba7f28340",
    "other/samples/tfrecord":
        "8f09f3106f2a65aede71299bd196eef6",
    "other/batches/batch=8/idx":
        "5b1af98aab68ed3b93e0e66663344d22",
    "other/batches/batch=8/npy":
        "dbd3f8318f3cf85e46d5f53ef1201909",
    "other/batches/batch=8/npz":
        "381b5db5d8146f1de213d2d57af3e251",
    "other/batches/batch=8/raw":
        "4a3ba7d9f6c8616d933d6f380e42da12",
    "other/batches/batch=8/tar":
        "6ee17a42323ad8c1f9cdcf3493dd3c4e",
    "other/batches/batch=8/tfrecord":
        "7f57f7a62bdd572341cb0264dfe18e19",
    "other/batches/batch=8,seed=7/epoch=3/idx":
        "6c480d939c6da58a629039da8aaf340a",
    "other/batches/batch=8,seed=7/epoch=3/npy":
        "b3c5dc0e5f382975cd5bd17d9895b56d",
    "other/batches/batch=8,seed=7/epoch=3/npz":
        "bfebe35239170d771d43f4b784b54eb9",
    "other/batches/batch=8,seed=7/epoch=3/raw":
        "fcaa4e81d7efccdbfd7b924508da0309",
    "other/batches/batch=8,seed=7/epoch=3/tar":
        "d05c0a03511435b1a0e6fa11e6ab7722",
    "other/batches/batch=8,seed=7/epoch=3/tfrecord":
        "40eddf7c73425b7c1a7ee6960ecea2ae",
    "other/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/idx":
        "4a6bd382422b828cf7e29909ef06dc23",
    "other/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/npy":
        "29a83b99dc4f7adb61984dfc9508951f",
    "other/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/npz":
        "99d9a9e1d4ce1dee29a380f07cdfeaa7",
    "other/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/raw":
        "10b05a0da1b687801059bec0683a242b",
    "other/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/tar":
        "1db3534dbcc844371acb3047a2ff70fe",
    "other/batches/batch=4,part=1of2,rank=0of3,seed=1,shuffle=window:2,tail=wrap/epoch=0/tfrecord":
        "66b25b80b0c78b2950a39c9a09b6c598",
    "other/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/idx":
        "7bdf9df3c1ed13bca5bfc2c4659c34e4",
    "other/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/npy":
        "35766ed0af6273083b40f59983623f6c",
    "other/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/npz":
        "f1ad56858cee9c88db314e25dd72f976",
    "other/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/raw":
        "d3c96bcf6f68cd158f50f22c402d875d",
    "other/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/tar":
        "e89339ad1d1aeecf715b350d88391785",
    "other/batches/batch=all,seed=18446744073709551615/epoch=18446744073709551615/tfrecord":
        "30bd2dfa54cf130ae016c648c7c1188b",
    "train/preview.png":
        "e71127756191aa6a46bbf8fc1290ab68",
}


def sum_of(folder):
    """Names and bytes of all files of a folder."""
    total = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        data = content(folder, name)
        total.update(f"{name} {len(data)}\n".encode() + data)
    return total.hexdigest()[:32]


with mounted():
    found = {}
    for dataset in ("train", "other"):
        for folder in FOLDERS:
            for enc in sorted(os.listdir(path(dataset, folder))):
                found[f"{dataset}/{folder}/{enc}"] = sum_of(path(dataset, folder, enc))
    found["train/preview.png"] = hashlib.sha256(content(path("train/preview.png"))).hexdigest()[:32]
if os.environ.get("GOLDEN") == "print":  # to add an encoding
    for name, value in found.items():
        print(f'    "{name}":\n        "{value}",')
    sys.exit(0)
equal(sorted(found), sorted(SUMS), "folders")
for name, want in SUMS.items():
    equal(found[name], want, name)
