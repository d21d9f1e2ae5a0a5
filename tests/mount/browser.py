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
         "--hide-scrollbars", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"]


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
