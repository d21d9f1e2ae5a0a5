#!/usr/bin/python3
# needs: python3-pil
"""Pictures as arrays against PIL: compare_pil.py EPOCHFS-PICTURE BUILT-WITH-WEBP(0 or 1)

The same geometry, with PIL's own decoders and filter. Where a JPEG is decoded at its full size, no value differs by
more than 1, and the mean of all differences is below 0.25. Where libjpeg makes it smaller first, that mean is below 2.5;
of most pictures below 1.
"""
import base64
import io
import os
import struct
import subprocess
import sys
import unittest
import warnings

import numpy as np
from PIL import Image, ImageFile, ImageOps

TOOL, HAS_WEBP = sys.argv[1], sys.argv[2] == "1"
SIZES = ((224, 224), (64, 64), (100, 50), (37, 91), (300, 400), (1, 1))
SHARED = os.environ.get("SHARED_DATA", "")
ORIENTATION = 0x0112
STEP = 5 if os.environ.get("SANITIZED") else 1  # through places that are cut or damaged
JPEG_410 = base64.b64decode(  # 160 x 64, colours of a fourth of the columns and half of the rows, which PIL does not write
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDADUlKC8oITUvKy88OTU/UIVXUElJUKN1e2GFwarLyL6qurfV8P//1eL/5re6////////"
    "////zv//////////////2wBDATk8PFBGUJ1XV53/3Lrc////////////////////////////////////////////////////////"
    "////////////wAARCABAAKADAUIAAhEBAxEB/8QAFwABAQEBAAAAAAAAAAAAAAAAAQACBP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/"
    "xAAYAQEBAQEBAAAAAAAAAAAAAAABAwUCBP/EABYRAQEBAAAAAAAAAAAAAAAAAAACEf/aAAwDAQACEQMRAD8A2gmgg8uPHIQTQCOL"
    "SAg0gnWLSAg0gji0gINII4vLqCDSCGMWQEGkEcWkBBpBHF5AQaQRxaQEGkEcWl1BBpBDGNICDSCOLSAg0gji0gINBA4tIQTQQOLS"
    "6wg0ghjGkBBoIOsWlAJoIHFpCCaCBxeQgmggcWl//9k=")


def picture(width, height, seed=1):
    """Smooth, with edges and noise, as photographs are."""
    random = np.random.default_rng(seed)
    small = Image.fromarray(random.integers(0, 256, (7, 9, 3), dtype=np.uint8))
    pixels = np.asarray(small.resize((width, height), Image.BICUBIC)).astype(int)
    pixels[height // 3:height // 2, width // 4:width // 2] //= 2
    return Image.fromarray(np.clip(pixels + random.normal(0, 3, pixels.shape), 0, 255).astype(np.uint8))


def ours(data, height, width):
    tool.stdin.write(f"{height} {width} {len(data)}\n".encode() + data)
    tool.stdin.flush()
    reason = tool.stdout.readline()
    if not reason:
        raise RuntimeError(f"the program ended: {tool.wait()}")
    if reason != b"\n":
        raise ValueError(reason.decode())
    return np.frombuffer(tool.stdout.read(height * width * 3), np.uint8).reshape(height, width, 3)


def pil(data, height, width):
    """As torchvision's Resize and CenterCrop have it, for one side as for two."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    w, h = image.size
    scaled = (height * w // h, height) if h * width <= w * height else (width, width * h // w)
    left, top = round((scaled[0] - width) / 2.0), round((scaled[1] - height) / 2.0)
    return np.asarray(image.resize(scaled, Image.BILINEAR).crop((left, top, left + width, top + height)))


def file_of(image, kind, **how):
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def is_reduced(data, height, width):
    """Does libjpeg make it smaller before it is scaled?"""
    image = Image.open(io.BytesIO(data))
    w, h = image.size
    orientation = image.getexif().get(ORIENTATION, 1)
    if not isinstance(orientation, (bytes, str)) and orientation >= 5:
        w, h = h, w
    return image.format == "JPEG" and min(w / width, h / height) >= 2


class Compare(unittest.TestCase):
    def check(self, data, what, sizes=SIZES):
        for height, width in sizes:
            with self.subTest(what=what, height=height, width=width):
                difference = np.abs(ours(data, height, width).astype(int) - pil(data, height, width))
                if is_reduced(data, height, width):
                    self.assertLess(difference.mean(), 2.5 if height * width > 1 else 8)
                    continue
                self.assertLessEqual(difference.max(), 1)
                self.assertLess(difference.mean(), 0.25 if height * width > 1 else 1)

    def test_jpeg_of_each_sampling(self):
        for size in ((500, 375), (375, 500), (401, 403), (33, 17)):
            for sampling in (0, 1, 2):
                self.check(file_of(picture(*size), "JPEG", quality=90, subsampling=sampling), (size, sampling))
        self.check(JPEG_410, "4:1:0, columns cut off", ((32, 32), (16, 16), (16, 60)))

    def test_jpeg_progressive_grey_and_cmyk(self):
        image = picture(500, 375)
        self.check(file_of(image, "JPEG", quality=90, progressive=True), "progressive")
        self.check(file_of(image.convert("L"), "JPEG", quality=90), "grey")
        self.check(file_of(image.convert("CMYK"), "JPEG", quality=95), "cmyk", SIZES[:1])

    def test_png_of_each_mode(self):
        image = picture(260, 200)
        alpha = image.copy()
        alpha.putalpha(image.convert("L"))
        for what, made in {"rgb": image, "rgba": alpha, "grey": image.convert("L"), "la": alpha.convert("LA"),
                           "palette": image.quantize(200), "4 bits": image.quantize(16),
                           "1 bit": image.convert("1")}.items():
            self.check(file_of(made, "PNG"), what)
        self.check(file_of(image.quantize(200), "PNG", transparency=3), "transparent colour")

    @unittest.skipUnless(HAS_WEBP, "built without libwebp")
    def test_webp(self):
        image = picture(260, 200)
        alpha = image.copy()
        alpha.putalpha(image.convert("L"))
        for what, made in {"rgb": image, "rgba": alpha, "grey": image.convert("L")}.items():
            self.check(file_of(made, "WEBP", quality=90), what)
            self.check(file_of(made, "WEBP", lossless=True, exact=True), what + ", lossless")

    def test_each_type_of_orientation(self):
        """Each type of TIFF in both orders of bytes, several values, and values elsewhere."""
        image = picture(60, 40)
        types = {1: "B", 2: "B", 3: "H", 4: "I", 5: "II", 6: "b", 7: "B", 8: "h", 9: "i", 10: "ii", 11: "f", 12: "d", 13: "I",
                 14: "H", 16: "Q"}
        for order, end in (("II", "<"), ("MM", ">")):
            for kind, form in types.items():
                for count in (0, 1, 2, 5):
                    value = b"".join(struct.pack(end + form, *((6, 1, 3)[:len(form)])) for _ in range(count))
                    inline = value if len(value) <= 4 else struct.pack(end + "I", 27)
                    exif = order.encode() + struct.pack(end + "HIHHHI", 42, 8, 1, ORIENTATION, kind, count)
                    exif += inline.ljust(4, b"\0") + bytes(5) + value
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        self.check(file_of(image, "JPEG", exif=b"Exif\0\0" + exif), (order, kind, count), SIZES[:1])

    def test_each_orientation(self):
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[ORIENTATION] = orientation
            image = picture(501, 376)
            for kind in ("JPEG", "PNG", "WEBP") if HAS_WEBP else ("JPEG", "PNG"):
                self.check(file_of(image, kind, exif=exif.tobytes()), (kind, orientation), SIZES[:4])

    def test_cut_short_as_pil_has_it(self):
        whole = file_of(picture(60, 40), "JPEG")
        self.assertFalse(ImageFile.LOAD_TRUNCATED_IMAGES)
        for length in range(200, len(whole), 7 * STEP):
            with self.assertRaises(OSError):
                pil(whole[:length], 8, 8)
            with self.assertRaises(ValueError):
                ours(whole[:length], 8, 8)

    def test_damaged_as_pil_has_it(self):
        """Bits that flip in the scan: both go on, or both refuse."""
        whole = bytearray(file_of(picture(60, 40), "JPEG"))
        start = whole.index(b"\xff\xda") + 14
        for at in range(start, len(whole) - 2, 11 * STEP):
            damaged = bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1:])
            try:
                want = pil(damaged, 40, 60)
            except (OSError, SyntaxError):
                with self.assertRaises(ValueError):
                    ours(damaged, 40, 60)
                continue
            self.assertLessEqual(np.abs(ours(damaged, 40, 60).astype(int) - want).max(), 1)

    def test_real_files(self):
        folder = os.path.join(SHARED, "files")
        if not os.path.isdir(folder):
            self.skipTest("no shared data")
        n = 0
        for root, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                path = os.path.join(root, name)
                if not name.lower().endswith((".jpg", ".jpeg", ".png", ".webp")) or name.endswith(".webp") > HAS_WEBP:
                    continue
                with open(path, "rb") as f:
                    data = f.read()
                try:
                    Image.open(io.BytesIO(data)).load()
                except (OSError, SyntaxError):
                    with self.assertRaises(ValueError, msg=path):
                        ours(data, 8, 8)
                    continue
                self.check(data, path, SIZES[:2])
                n += 1
        self.assertGreater(n, 50)


if __name__ == "__main__":
    with subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tool:
        done = unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful()
        tool.stdin.close()
        sys.exit(tool.wait() or not done)
