#!/usr/bin/python3
"""A program that has set its locale gets the same bytes: decimal commas, another order of letters, other control characters."""

import os
import re
import subprocess
import sys

from lib import EPOCHFS, PRIVATE, SLOW, SOURCE, equal, skip, write
from page_blocks import ROOT

LIBRARY = f"{os.path.dirname(EPOCHFS)}/libepochfs.so.0"
LOCALES = (("de_DE.UTF-8", "UTF-8"), ("de_DE", "ISO-8859-1"))
READ = f"""
import locale, os, sys
sys.path.insert(0, {ROOT + '/python'!r})
import epochfs
locale.setlocale(locale.LC_ALL, os.environ["LC_ALL"])
with epochfs.load(sys.argv[1], cache="off") as data:
    for name in data:
        for batch in data[name].batches("batch=4"):
            print(name, {{k: v.tolist() for k, v in sorted(batch.items())}})
    print(data.notes())
"""

if SLOW or not os.path.exists(LIBRARY):
    skip("the library is not built, or with a sanitizer, which a program would have to bring")
if not os.path.exists("/usr/share/i18n/locales/de_DE"):
    skip("no definitions of locales (package locales)")

for name, charmap in LOCALES:
    subprocess.run(["localedef", "-f", charmap, "-i", "de_DE", f"{PRIVATE}/{name}"], check=True)
write("numbers/table.csv", ("x,y\n" + "".join(f"0.{i}12345678901234567890123,{i}.5e-3\n" for i in range(1, 20))).encode())
write("numbers/train.svm", "".join(f"{i % 2} 1:0.{i}1234567890123456789 2:1.5\n" for i in range(1, 20)).encode())
for i, folder in enumerate(("apple", "Bear", "cat", "_dog")):
    for name in ("b1", "C1", "_x"):
        write(f"classes/{folder}/{name}.txt", f"{folder} {name}\n".encode())


def read(source, name):
    done = subprocess.run([sys.executable, "-c", READ, source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "EPOCHFS_LIBRARY": LIBRARY, "LOCPATH": PRIVATE, "LC_ALL": name, "PYTHONUTF8": "1"})
    return re.sub(r"after \d+ ms", "after N ms", done.stdout)


for source in ("numbers/table.csv", "numbers/train.svm", "classes", "http://127.0.0.1:9/Äpfel/"):
    at = source if "://" in source else f"{SOURCE}/{source}"
    want = read(at, "C.UTF-8")
    equal("Traceback" in want, "://" in source, want)
    for name, _ in LOCALES:
        equal(read(at, name), want, f"{source} in {name}")
