"""A headless Chromium, driven through a pipe (--remote-debugging-pipe): no port, no network, no packages."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The program, by $OCT_BROWSER or in $PATH; None when there is none."""
    return os.environ.get("OCT_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="oct-browser-", ignore_cleanup_errors=True)
        down, self.down = os.pipe()
        self.up, up = os.pipe()
        ours = (self.down, self.up)

        def ends():  # Chromium reads commands from descriptor 3 and writes to 4.
            a, b = os.dup(down), os.dup(up)
            for fd in ours:
                os.close(fd)
            os.dup2(a, 3)
            os.dup2(b, 4)

        options = ["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--disable-background-networking", "--disable-extensions", f"--user-data-dir={self.folder.name}"]
        self.process = subprocess.Popen([program, *options], close_fds=False, preexec_fn=ends, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(down)
        os.close(up)
        self.text, self.number, self.events, self.session, self.target = b"", 0, [], None, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.down)
        os.close(self.up)
        self.folder.cleanup()

    def message(self, until):
        while b"\0" not in self.text:
            ready, _, _ = select.select([self.up], [], [], max(0, until - time.monotonic()))
            part = os.read(self.up, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser ended" if ready else "the browser does not answer")
            self.text += part
        head, _, self.text = self.text.partition(b"\0")
        return json.loads(head)

    def call(self, method, seconds=60, **params):
        """The result of a command; events that come before it are kept."""
        self.number += 1
        call = {"id": self.number, "method": method, "params": params} | ({"sessionId": self.session} if self.session else {})
        os.write(self.down, json.dumps(call).encode() + b"\0")
        until = time.monotonic() + seconds
        while True:
            m = self.message(until)
            if m.get("id") == self.number:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']['message']}")
                return m["result"]
            self.events.append(m)

    def wait(self, method, seconds=60):
        until = time.monotonic() + seconds
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.message(until))

    def scheme(self, dark, media=""):
        """The colours that the reader asks for, and on what the page is shown."""
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, address, width, height=900, dark=False, script=True):
        """Shows a page in a new tab. What it says on the console, or asks of the network, is in `said` then."""
        self.session = None
        if self.target:
            self.call("Target.closeTarget", targetId=self.target)
        self.target = target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.scheme(dark)
        if not script:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.wait("Page.loadEventFired")

    def said(self):
        """Messages of the console, errors, and requests for anything but the page, so far."""
        self.call("Runtime.evaluate", expression="0")
        out = []
        for e in self.events:
            p = e.get("params", {})
            if e.get("method") == "Runtime.consoleAPICalled":
                out.append(f"console: {[a.get('value') for a in p['args']]}")
            elif e.get("method") == "Runtime.exceptionThrown":
                out.append(f"exception: {p['exceptionDetails'].get('exception', {}).get('description', p['exceptionDetails']['text'])}")
            elif e.get("method") == "Log.entryAdded":
                out.append(f"log: {p['entry']['text']}")
            elif e.get("method") == "Network.requestWillBeSent" and p.get("type") != "Document":
                out.append(f"request: {p['request']['url']}")
        return out

    def value(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in r:
            raise RuntimeError(f"{expression}: {r['exceptionDetails'].get('exception', {}).get('description')}")
        return r["result"].get("value")

    def key(self, key, code=None, text=None):
        """Presses a key where the focus is, as a user does."""
        numbers = {"Enter": 13, "Tab": 9, " ": 32, "Backspace": 8}
        number = numbers.get(key, ord(key.upper()) if len(key) == 1 else 0)
        text = {"Enter": "\r", "Tab": None, "Backspace": None}.get(key, key) if text is None else text
        common = {"key": key, "code": code or key, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path, whole=True):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1}} if whole else {}
        r = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **clip)
        with open(path, "wb") as f:
            f.write(base64.b64decode(r["data"]))
