"""Augmented pictures in Python, for cases: what docs/spec/augment.md and docs/spec/order.md say, in integers. It knows base, rrc,
crop, flip, vflip, gray, erase and salt.

    model = Model("rrc+flip", seed=7)
    pixels, box = model.picture(rgb, height, width, epoch, index, position)
"""

import math

import numpy as np

MASK, GOLDEN = 2**64 - 1, 0x9e3779b97f4a7c15
CROP, FLIP, VFLIP, GRAY, ERASE = 0, 1, 2, 5, 6
DEFAULTS = {"base": "0", "rrc": "", "crop": "0", "flip": "0.5", "vflip": "0.5", "gray": "0.1", "erase": "0.5", "salt": "0"}
MEAN = (124, 116, 104)


def mixed(z):
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def binary(decimal, bits):
    """A decimal as a whole number of 2^-bits, a half up."""
    whole, _, part = decimal.partition(".")
    millionths = int(whole) * 10**6 + int((part + "000000")[:6])
    return (millionths * 2**bits * 2 + 10**6) // (2 * 10**6)


def weights(size, scaled):
    """The 14-bit weights of an axis of `size` pixels for each of the scaled ones."""
    rows = []
    for i in range(scaled):
        middle, reach = (2 * i + 1) * size, 2 * max(size, scaled)
        distances = np.abs((2 * np.arange(size, dtype=object) + 1) * scaled - middle)
        heights = [max(0, reach - int(d)) for d in distances]
        sums = np.cumsum(np.array(heights, dtype=object))
        shares = [((int(s) << 14) + int(sums[-1]) // 2) // int(sums[-1]) for s in sums]
        rows.append(np.diff([0] + shares))
    return np.array(rows, dtype=np.int64)


def scaled_part(rgb, top, left, height, width, to_height, to_width, lies=False):
    """lies: the file has its rows as columns, so the other axis is rounded first."""
    if lies:
        return scaled_part(rgb.transpose(1, 0, 2), left, top, width, height, to_width, to_height).transpose(1, 0, 2)
    across, down = weights(width, to_width), weights(height, to_height)
    part = rgb[top:top + height, left:left + width].astype(np.int64)
    lines = (np.einsum("yxc,kx->ykc", part, across) + 64) >> 7
    return ((np.einsum("yxc,ky->kxc", lines, down) + 2**20) >> 21).astype(np.uint8)


class Model:
    def __init__(self, recipe, seed):
        self.seed, self.words = seed, {}
        for word in recipe.split("+") if recipe else ():
            name, *values = word.split(":")
            keys = dict(v.split("=") for v in values if "=" in v)
            self.words[name] = ([v for v in values if "=" not in v] + [DEFAULTS[name]])[0], keys

    def number(self, word, j):
        return mixed((self.state + (256 * word + j + 1) * GOLDEN) & MASK)

    def below(self, n, word, j):
        return self.number(word, j) * n >> 64

    def happens(self, name, word):
        return name in self.words and self.number(word, 0) >> 32 < binary(self.words[name][0], 32)

    def range_of(self, name, key, default, bits):
        return [binary(v, bits) for v in self.words[name][1].get(key, default).split("-")]

    def tries(self, name, word, area, scale, ratio):
        least, most = self.range_of(name, "scale", scale, 16)
        for j in range(8, 88, 8):
            share = least + self.below(most - least + 1, word, j)
            low, high = self.range_of(name, "ratio", ratio, 28)
            for bit in f"{self.number(word, j + 1):064b}"[:24]:
                middle = math.isqrt(low * high)
                low, high = (middle, high) if bit == "1" else (low, middle)
            r = low >> 12
            yield j, (math.isqrt(area * share * r >> 30) + 1) // 2, (math.isqrt(4 * area * share // r) + 1) // 2

    def part(self, H, W):
        for j, w, h in self.tries("rrc", CROP, H * W, "0.08-1", "0.75-1.333333"):
            if 0 < w <= W and 0 < h <= H:
                return self.below(H - h + 1, CROP, j + 2), self.below(W - w + 1, CROP, j + 3), h, w
        low, high = self.range_of("rrc", "ratio", "0.75-1.333333", 28)
        h, w = H, W
        if W * 2**28 < H * low:
            h = (W * 2**29 // low + 1) // 2
        elif W * 2**28 > H * high:
            w = (2 * H * high // 2**28 + 1) // 2
        return (H - h) // 2, (W - w) // 2, h, w

    def picture(self, rgb, height, width, epoch, index, position, short=0, lies=False):
        s = mixed((self.seed + GOLDEN) & MASK)
        for word in (epoch, 2**63 + 4, index, position, int(self.words.get("salt", "0")[0])):
            s = mixed(((s ^ word) + GOLDEN) & MASK)
        self.state = s
        file_height, file_width = rgb.shape[:2]
        base = int(self.words.get("base", "0")[0])
        if base and min(rgb.shape[:2]) > base:
            rgb = scaled_part(rgb, 0, 0, *rgb.shape[:2], *self.cover(*rgb.shape[:2], 0, 0, base), lies)
            lies = False
        H, W = rgb.shape[:2]
        y, x, h, w, th, tw, top, left = 0, 0, H, W, height, width, 0, 0
        if "rrc" in self.words:
            y, x, h, w = self.part(H, W)
            made = scaled_part(rgb, y, x, h, w, height, width, lies)
        else:
            th, tw = self.cover(H, W, height, width, short)
            top, left = (round((a - b) / 2) for a, b in ((th, height), (tw, width)))
            P = int(self.words["crop"][0]) if "crop" in self.words else 0
            if "crop" in self.words:
                top = self.below(th + 2 * P - height + 1, CROP, 0) - P
                left = self.below(tw + 2 * P - width + 1, CROP, 1) - P
            padded = np.pad(scaled_part(rgb, 0, 0, H, W, th, tw, lies), ((P, P), (P, P), (0, 0)))
            made = padded[top + P:top + P + height, left + P:left + P + width]
        ky, kx = h / th * file_height / H, w / tw * file_width / W
        box = [x * file_width / W + left * kx, y * file_height / H + top * ky, width * kx, height * ky]
        if self.happens("flip", FLIP):
            made, box[0], box[2] = made[:, ::-1], box[0] + box[2], -box[2]
        if self.happens("vflip", VFLIP):
            made, box[1], box[3] = made[::-1], box[1] + box[3], -box[3]
        made = made.copy()
        if self.happens("gray", GRAY):
            made[:] = ((made.astype(int) @ (19595, 38470, 7471) + 32768) >> 16)[..., None]
        self.hole = None
        if self.happens("erase", ERASE):
            for j, eh, ew in self.tries("erase", ERASE, height * width, "0.02-0.33", "0.3-3.3"):
                if eh < height and ew < width:
                    ey, ex = self.below(height - eh + 1, ERASE, j + 2), self.below(width - ew + 1, ERASE, j + 3)
                    self.hole = np.s_[ey:ey + eh, ex:ex + ew]
                    made[self.hole] = MEAN
                    break
        return made, np.array(box, np.float32)

    @staticmethod
    def cover(H, W, height, width, short):
        if short:
            return (short, W * short // H) if H <= W else (H * short // W, short)
        return (height, height * W // H) if H * width <= W * height else (width * H // W, width)


def normalized(rgb, mean, std, hole=None):
    """[3, H, W], each step rounded to float32."""
    x = rgb.astype(np.float32) / np.float32(255)
    x = (x - np.array(mean, np.float32)) / np.array(std, np.float32)
    if hole:
        x[hole] = 0
    return x.transpose(2, 0, 1)
