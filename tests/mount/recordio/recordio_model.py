"""RecordIO in Python, from its description: a writer, and a reader that knows nothing of the product."""

import struct

MAGIC = struct.pack("<I", 0xCED7230A)


def part(flag, data, pad=b"\0"):
    return MAGIC + struct.pack("<I", flag << 29 | len(data)) + data + pad * (-len(data) % 4)


def record(payload, pad=b"\0"):
    """A payload is cut where it has the magic at a multiple of 4."""
    cuts = [i for i in range(0, len(payload) - 3, 4) if payload[i:i + 4] == MAGIC]
    if not cuts:
        return part(0, payload, pad)
    starts, ends = [0] + [c + 4 for c in cuts], cuts + [len(payload)]
    flags = [1] + [2] * (len(cuts) - 1) + [3]
    return b"".join(part(f, payload[a:b], pad) for f, a, b in zip(flags, starts, ends))


def picture(labels, number, image, high=0):
    """im2rec's payload: labels is a number or a list."""
    if isinstance(labels, list):
        return struct.pack(f"<IfQQ{len(labels)}f", len(labels), 0, number, high, *labels) + image
    return struct.pack("<IfQQ", 0, labels, number, high) + image


def read(data):
    """[(place, payload)] of a good file."""
    ret, at, parts, place = [], 0, [], 0
    while at < len(data):
        magic, word = data[at:at + 4], struct.unpack_from("<I", data, at + 4)[0]
        flag, length = word >> 29, word & (1 << 29) - 1
        assert magic == MAGIC and flag < 4 and (flag < 2) == (not parts), (at, magic, flag)
        place = place if parts else at
        parts.append(data[at + 8:at + 8 + length])
        at += 8 + length + -length % 4
        if flag in (0, 3):
            ret.append((place, MAGIC.join(parts)))
            parts = []
    assert not parts
    return ret


def parse_picture(payload):
    """(labels, id, high, image)"""
    n, label, number, high = struct.unpack_from("<IfQQ", payload)
    labels = list(struct.unpack_from(f"<{n}f", payload, 24)) if n else label
    return labels, number, high, payload[24 + 4 * n:]


def ext_of(image):
    return next((e for start, e in ((b"\xff\xd8\xff", "jpg"), (b"\x89PNG", "png"), (b"GIF8", "gif"))
                 if image.startswith(start)), "bin")
