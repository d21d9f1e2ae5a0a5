#!/usr/bin/python3
# needs: chromium mkdocs mandoc
# slow: builds a site, and looks at it in a browser
"""docs/make-site: every page of the repository and each man page are in its navigation; all can be read on a phone and on a wide
screen; search finds; a link that leads nowhere is an error."""

import functools
import glob
import http.server
import os
import re
import shutil
import subprocess
import threading

from browser import LOOK, browser
from lib import PRIVATE, contains, equal, text

ROOT = os.path.realpath(f"{os.path.dirname(os.path.abspath(__file__))}/../../..")
SITE, TREE, NEW = f"{PRIVATE}/site", f"{PRIVATE}/tree", "new-page"
LOOKED_AT = ("index", "docs/reference/options", "docs/man/epochfs.1")

done = subprocess.run([f"{ROOT}/docs/make-site", SITE], capture_output=True, text=True, check=False)
equal((done.returncode, done.stdout), (0, ""), f"what it says: {done.stderr[-3000:]}")
made = {os.path.relpath(page, SITE)[:-5] for page in glob.glob(f"{SITE}/**/*.html", recursive=True)}
for page in glob.glob(f"{ROOT}/docs/**/*.md", recursive=True):
    name = os.path.relpath(page, ROOT)[:-3]
    name = re.sub("README$", "index", name)
    equal(name in made, True, f"the page {name}")
    equal(f'"docs/{os.path.relpath(name, "docs")}.html' in text(SITE, "index.html").replace("../", ""), True, f"{name} in the navigation")
for part in ("epochfs.1", "epochfs-cache.1", "mount.epochfs.8"):
    contains(text(SITE, f"docs/man/{part}.html"), 'id="EXIT_STATUS"')


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)) as server, browser() as b:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for width in (360, 1440):
        for name in LOOKED_AT:
            b.open(f"{SITE}/{name}.html", width)
            found = b.run(LOOK)
            equal(found["bad"], [], f"{name} at {width} pixels")
            equal(found["seen"] > 10, True, f"{found['seen']} texts were looked at")
            equal([url for url in found["fetched"] if not url.startswith("file://")], [], f"what {name} fetches from elsewhere")
            if os.environ.get("KEEP_PICTURES"):
                b.picture(f"{os.environ['KEEP_PICTURES']}/{name.replace('/', '-')}-{width}.png")
    b.ask("POST", "/url", url=f"http://127.0.0.1:{server.server_port}/search.html?q=swap-or-not")
    b.ask("POST", "/timeouts", script=100_000)
    hits = b.ask("POST", "/execute/async", args=[], script="""
        const done = arguments[0];
        (function look() {
          const hits = [...document.querySelectorAll('#mkdocs-search-results a')].map(a => a.getAttribute('href'));
          hits.length ? done(hits) : setTimeout(look, 50);
        })();""")
    contains(" ".join(hits), "docs/spec/order.html")
    server.shutdown()

os.makedirs(f"{TREE}/docs/man")
shutil.copy(f"{ROOT}/docs/make-site", f"{TREE}/docs")
for name, words in (("README", "# Small"), ("docs/README", "# Pages\n\n## One\n\n[it](plans.md)"), ("docs/plans", "# Plans"),
                    (f"docs/{NEW}", "# A page that no page mentions\n\n[To nowhere](plans.md#no-such-heading)")):
    with open(f"{TREE}/{name}.md", "w", encoding="utf-8") as f:
        f.write(words + "\n")
done = subprocess.run([f"{TREE}/docs/make-site", f"{PRIVATE}/other"], capture_output=True, text=True, check=False)
equal(done.returncode, 1, "exit code with a link to nowhere")
contains(done.stderr, f"docs/{NEW}.html: plans.html#no-such-heading: expected a heading of that name, got none")
contains(text(PRIVATE, "other/index.html"), "A page that no page mentions")
