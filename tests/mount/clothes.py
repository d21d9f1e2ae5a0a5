"""The image directory of README.md: JPEGs of the real Fashion-MNIST, one directory per class."""

import os

import numpy as np
from PIL import Image

from lib import FASHION, idx_parse, load_gz

CLASSES = {"boot": 9, "dress": 3, "trousers": 1}  # directory: its label in Fashion-MNIST
EACH = 300


def make(where):
    """where/train/<class>/<number in Fashion-MNIST>.jpg, EACH images per class."""
    images = idx_parse(load_gz(f"{FASHION}/train-images-idx3-ubyte.gz"))
    labels = idx_parse(load_gz(f"{FASHION}/train-labels-idx1-ubyte.gz"))
    for name, label in CLASSES.items():
        os.makedirs(f"{where}/train/{name}")
        for i in np.flatnonzero(labels == label)[:EACH]:
            Image.fromarray(images[i]).convert("RGB").save(f"{where}/train/{name}/{i:05}.jpg", quality=95)
