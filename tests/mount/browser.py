"""Headless Chromium, driven by chromedriver's own protocol (W3C WebDriver): pages are files of the test."""

import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import urllib.request
import zlib

from lib import PRIVATE, equal

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--hide-scrollbars", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]

# What is too small, too faint or too wide, of all elements that have text of their own.
LOOK = """
const bad = [];
function luminance(c) {
  const f = c.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2];
}
const rgb = s => (s.match(/[\\d.]+/g) || []).map(Number);
function behind(e) {
  for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length == 3 || c[3] > 0) return c.slice(0, 3);
  }
  return [255, 255, 255];
}
function scrolls(e) {
  for (; e; e = e.parentElement)
    if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true;
  return false;
}
let seen = 0;
for (const e of document.body.querySelectorAll('*')) {
  if (![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) continue;
  const style = getComputedStyle(e), r = e.getBoundingClientRect(), what = e.textContent.trim().slice(0, 30);
  if (!r.width || r.right <= 0 || style.visibility == 'hidden') continue;  // a menu that is shut
  seen++;
  if (parseFloat(style.fontSize) < 13) bad.push('small: ' + what + ' ' + style.fontSize);
  if ((r.left < -1 || r.right > innerWidth + 1) && !scrolls(e)) bad.push('beside the window: ' + what);
  const a = luminance(rgb(style.color).slice(0, 3)), b = luminance(behind(e));
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) bad.push('faint: ' + what + ' ' + contrast.toFixed(2));
}
if (document.documentElement.scrollWidth > innerWidth) bad.push('wider than the window');
return {seen: seen, bad: bad, drawings: [...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().height),
        scripts: document.scripts.length, title: document.title,
        fetched: performance.getEntriesByType('resource').map(r => r.name)};
"""


class Browser:
    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}"
        # Loopback, whatever proxy the environment names.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        found = self.ask("POST", "/session", capabilities={"alwaysMatch": {
            "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"binary": shutil.which("chromium"),
                                   "args": FLAGS + [f"--user-data-dir={PRIVATE}/chromium"]}}})
        self.base += f"/session/{found['sessionId']}"

    def ask(self, method, path, **body):
        request = urllib.request.Request(self.base + path, method=method,
                                         data=json.dumps(body).encode() if method == "POST" else None,
                                         headers={"Content-Type": "application/json"})
        with self.opener.open(request, timeout=120) as reply:
            return json.load(reply)["value"]

    def open(self, file, width):
        """Show a file in a window whose page is that wide."""
        self.ask("POST", "/window/rect", width=width, height=900)
        self.ask("POST", "/goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride",
                 params={"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        self.ask("POST", "/url", url=f"file://{file}")
        equal(self.run("return window.innerWidth"), width, "width of the page")

    def run(self, script):
        return self.ask("POST", "/execute/sync", script=script, args=[])

    def messages(self):
        """What the console has said since the last call, except the browser's own pages, which miss a network."""
        return [f"{m['level']}: {m['message']}" for m in self.ask("POST", "/se/log", type="browser")
                if m["level"] != "DEBUG" and not m["message"].startswith("chrome://")]

    def pdf(self, backgrounds):
        """The page as it is printed, with the browser's choice of printing backgrounds or not: its drawing commands."""
        found = base64.b64decode(self.ask("POST", "/goog/cdp/execute", cmd="Page.printToPDF",
                                          params={"printBackground": backgrounds})["data"])
        commands = []
        for stream in re.findall(rb"stream\r?\n(.*?)endstream", found, re.S):
            with contextlib.suppress(zlib.error):
                commands.append(zlib.decompress(stream))
        return b"\n".join(commands)

    def picture(self, file):
        with open(file, "wb") as f:
            f.write(base64.b64decode(self.ask("GET", "/screenshot")))


@contextlib.contextmanager
def browser():
    home = f"{PRIVATE}/home"
    os.makedirs(home, exist_ok=True)
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, env=os.environ | {"HOME": home})
    try:
        for line in driver.stdout:  # until it has said where it listens, or has ended
            port = re.search(r"started successfully on port (\d+)", line)
            if port:
                break
        b = Browser(port[1])
        try:
            yield b
        finally:
            b.ask("DELETE", "")
    finally:
        driver.terminate()
        driver.wait()
        driver.stdout.close()
