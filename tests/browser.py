"""A real browser, driven over WebDriver: pages as a reader sees them, and what they asked the network for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from base64 import b64decode

import pytest

MISSING = "no Chromium here; as root on Debian: apt-get install chromium chromium-driver (./dev test --all does it)"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
         "--hide-scrollbars"]  # fmt: skip

DRAWN = """const done = arguments[arguments.length - 1];
const result = () => {
  try { return {value: (() => { %s })() ?? null}; } catch (error) { return {error: `${error}`}; }
};
requestAnimationFrame(() => requestAnimationFrame(() => done(result())));"""


class Browser:
    """Headless Chromium with one window."""

    def __init__(self):
        if not (shutil.which("chromium") and shutil.which("chromedriver")):
            pytest.skip(MISSING)
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            self._root = f"http://127.0.0.1:{self._port()}"
            self._root = f"{self._root}/session/{self._start()}"
        except BaseException:
            self._driver.terminate()
            raise

    def _port(self):
        for line in self._driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return int(found[1])
        raise RuntimeError("chromedriver did not start")

    def _start(self):
        options = {"binary": shutil.which("chromium"), "args": FLAGS}
        logs = {"browser": "ALL", "performance": "ALL"}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs}
        return self._ask("POST", "/session", capabilities={"alwaysMatch": wanted})["sessionId"]

    def _ask(self, method, path, **body):
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(f"{self._root}{path}", data, method=method)  # noqa: S310
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310
            return json.load(answer)["value"]

    def devtools(self, command, **params):
        return self._ask("POST", "/goog/cdp/execute", cmd=command, params=params)

    def open(self, path, width=1200, dark=False):
        """Show a file on a screen of this width; what was logged before is forgotten."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", media="", features=[scheme])
        for kind in ("performance", "browser"):
            self._log(kind)
        self._ask("POST", "/url", url=path.as_uri())

    def as_printed(self):
        self.devtools("Emulation.setEmulatedMedia", media="print", features=[])

    def run(self, script):
        """What a function body returns in the page once it is drawn: what was unfolded just now is not yet visible."""
        outcome = self._ask("POST", "/execute/async", script=DRAWN % script, args=[])
        if "error" in outcome:
            raise RuntimeError(outcome["error"])
        return outcome["value"]

    def pdf(self):
        return b64decode(self.devtools("Page.printToPDF")["data"])

    @property
    def requests(self):
        """Addresses the page asked for since the last look."""
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    @property
    def complaints(self):
        """What the console said since the last look."""
        return [entry["message"] for entry in self._log("browser")]

    def _log(self, kind):
        return self._ask("POST", "/se/log", type=kind)

    def close(self):
        self._ask("DELETE", "")
        self._driver.terminate()
        self._driver.wait(timeout=600)
