"""Token files, written and cut into windows without epochfs: plain numpy, as the programs that write them do it."""

import struct

import numpy as np

CODES = {"u1": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "u2": 8}


def megatron(sequences, documents, kind, pointers=None, modes=None, version=1, code=None):
    """(.idx, .bin) of sequences (arrays); documents: the sequence that each begins with, and the number of all."""
    item = np.dtype("<" + kind)
    data = b"".join(np.asarray(s, item).tobytes() for s in sequences)
    lengths = np.array([len(s) for s in sequences], "<i4")
    if pointers is None:
        pointers = (np.cumsum([0, *lengths])[:-1] * item.itemsize) if len(lengths) else []
    index = (b"MMIDIDX\0\0" + struct.pack("<QBQQ", version, CODES[kind] if code is None else code, len(lengths),
                                         len(documents)) +
             lengths.tobytes() + np.array(pointers, "<i8").tobytes() + np.array(documents, "<i8").tobytes() +
             (b"" if modes is None else np.array(modes, "i1").tobytes()))
    return index, data


def llmc(tokens, kind="u2", count=None, version=None, magic=None):
    header = np.zeros(256, "<i4")
    header[:3] = (magic or {"u2": 20240520, "u4": 20240801}[kind], version or {"u2": 1, "u4": 7}[kind],
                  len(tokens) if count is None else count)
    return header.tobytes() + np.asarray(tokens, "<" + kind).tobytes()


def datatrove(tokens, ends, kind="u2", name="gpt2"):
    """(.ds, .ds.index, .ds.metadata)"""
    return (np.asarray(tokens, "<" + kind).tobytes(), np.asarray(ends, "<u8").tobytes(),
            f"{name}|{int(kind[1])}\n{len(tokens)}\n{len(tokens) / 1000:.1f} kT".encode())


class Windows:
    """The windows of streams: [(tokens, where documents begin or None, loss or None)]."""

    def __init__(self, streams, seq, stride=None, split=False):
        self.seq, self.found = seq, []
        stride = stride or seq
        for tokens, starts, loss in streams:
            pieces = [(0, len(tokens))]
            if split:
                edges = [*starts, len(tokens)]
                pieces = list(zip(edges, edges[1:]))
            for begin, end in pieces:
                for at in range(begin, end - seq, stride):
                    self.found.append((tokens, starts, loss, at))

    def __len__(self):
        return len(self.found)

    def field(self, name, k):
        tokens, starts, loss, at = self.found[k]
        window = np.asarray(tokens[at:at + self.seq + 1])
        if name == "tokens":
            return window
        if name == "loss":
            return np.asarray(loss[at:at + self.seq + 1], np.uint8)
        if name in ("x", "y"):
            return (window[:-1] if name == "x" else window[1:]).astype(np.int64)
        bounds = sorted({s - at for s in starts if at < s <= at + self.seq})
        place = np.arange(self.seq + 1)
        document = np.searchsorted(bounds, place, side="right")
        if name == "doc":
            return document.astype(np.uint32)
        if name == "pos":
            return (place - np.array([0, *bounds])[document]).astype(np.int32)
        pieces = [0, *[b for b in bounds if b < self.seq]]
        return np.array(pieces + [self.seq] * (self.seq + 1 - len(pieces)), np.int32)

    def names(self):
        _, starts, loss, _ = self.found[0]
        return ["tokens", *(["loss"] if loss is not None else []), "x", "y",
                *(["doc", "pos", "cu"] if starts is not None else [])]
