#!/usr/bin/python3
"""A folder that cannot be used: the message says what most of its files are and what to do, whichever file comes first; of
pictures it names the rule that was not met."""

from lib import SOURCE, contains, equal, run, write

ARROW = b"ARROW1\0\0\xff\xff\xff\xff" + bytes(200)
JPEG = b"\xff\xd8\xff\xe0 x"


def refused(folder, *words):
    said = run("info", f"{SOURCE}/{folder}", code=2)
    contains(said, "nothing usable", *words)
    equal(len(said) < 700, True, f"short: {said}")


# The first name is that of a page, not of the data.
write("hub/README.md", b"# A dataset\n")
write("hub/LICENSE", b"MIT\n")
for i in range(3):
    write(f"hub/train-0000{i}.arrow", ARROW)
refused("hub", "among 5 files (3 .arrow, 1 without an extension, 1 .md)", "train-00000.arrow: is Arrow", "Parquet or JSON lines")
# As datasets.save_to_disk() writes them: a page of JSON for each.
write("saved/data-00000-of-00001.arrow", b"\xff\xff\xff\xff\x88\1\0\0" + bytes(200))
for name in ("dataset_info.json", "state.json"):
    write(f"saved/{name}", b"{}\n")
refused("saved", "among 3 files (2 .json, 1 .arrow)", "data-00000-of-00001.arrow: is Arrow", "to_parquet(")

# Pictures: what keeps them from being a dataset.
for i in range(3):
    write(f"project/icons/{i}.jpg", JPEG)
write("project/Makefile", b"all:\n")
refused("project", "(3 .jpg, 1 without an extension)", "0.jpg: is a JPEG picture", "Makefile says that a program is built there",
        "Mount the folder of the pictures itself")
for i in range(3):
    write(f"beside/{i}.jpg", JPEG)
write("beside/x.h5", b"\x89HDF\r\n\x1a\n" + bytes(100))
refused("beside", "x.h5 next to them is of another format")
for i in range(8):
    write(f"few/{i}.cfg", b"names: [a, b]\n")
write("few/a/0.jpg", JPEG)
refused("few", "(8 .cfg, 1 .jpg)", "0.cfg: is text of no format that epochfs knows; texts are read as JSON lines")
write("recipe/epochfs.json", b'{"datasets": {"a": {"picture": "*.jpg"}}}')
for i in range(2):
    write(f"recipe/{i}.bin", b"x\1y")
refused("recipe", "(2 .bin)", "epochfs.json, line 1: 'picture': expected pictures")
write("one.jpg", JPEG)
contains(run("info", f"{SOURCE}/one.jpg", code=2), "Mount the folder of the pictures")
