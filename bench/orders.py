"""The orders of docs/spec/order.md and docs/spec/order-mix.md: their references, and with numpy shuffle=full for many positions at once."""

import os
import sys

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import order_reference  # pylint: disable=wrong-import-position

REFERENCE = order_reference.load()
MIX_REFERENCE = order_reference.load_mix()


def mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    return z ^ (z >> np.uint64(31))


def full(seed, epoch, n):
    """The samples of an epoch of shuffle=full, as uint64."""
    s = REFERENCE.key(seed, epoch, 0, n)
    x = np.arange(n, dtype=np.uint64)
    for r in range(REFERENCE.ROUNDS):
        k = np.uint64(REFERENCE.mix((s + (2 * r + 1) * REFERENCE.G) & REFERENCE.U64) % n)
        a = np.uint64(REFERENCE.mix((s + (2 * r + 2) * REFERENCE.G) & REFERENCE.U64))
        y = np.where(k >= x, k - x, k + np.uint64(n) - x)
        x = np.where(mix(np.maximum(x, y) ^ a) >> np.uint64(63), y, x)
    return x


def check(seed=7, epoch=3, n=1000):
    """Against the reference itself."""
    s = REFERENCE.key(seed, epoch, 0, n)
    want = [REFERENCE.permute(s, n, i) for i in range(0, n, 37)]
    if [int(x) for x in full(seed, epoch, n)[::37]] != want:
        raise AssertionError("orders.py is not the order of docs/spec/order.md")
