"""Makes shards for the bars of tar."""

import os


def member(name, content):
    header = bytearray(512)
    header[:len(name)] = name.encode()
    header[100:107] = b"0000644"
    header[124:135] = b"%011o" % len(content)
    header[148:157] = b"        0"
    header[257:265] = b"ustar\x0000"
    header[148:155] = b"%06o\0" % sum(header)
    return bytes(header) + content + bytes(-len(content) % 512)


def make(path, size, each):
    """A shard of that size whose samples have a picture of `each` bytes and a label. Returns how many
    members."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    picture, n = os.urandom(each), 0
    with open(path, "wb") as f:
        while f.tell() < size:
            f.write(b"".join(part for i in range(n, n + 1000) for part in (
                member(f"{i:09d}.jpg", picture), member(f"{i:09d}.cls", b"%d" % (i % 10)))))
            n += 1000
        f.write(bytes(1024))
    return 2 * n
