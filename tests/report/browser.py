"""A headless Chromium, driven over its DevTools protocol through two pipes: no driver, no port."""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

COMMAND = "chromium"
# As root and in Bazel's sandbox, Chromium cannot have a sandbox of its own.
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
           "--no-first-run", "--disable-extensions", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--remote-debugging-pipe")
SECONDS = 60  # until an answer


class Browser:
    """One browser with one page at a time. `at_end` is a test's addCleanup."""

    def __init__(self, at_end, *options):
        if shutil.which(COMMAND) is None:
            raise RuntimeError(f"{COMMAND} is not installed: ./dev installs it")
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session = None  # of the page
        self.events = []
        profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        at_end(profile.cleanup)
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()

        def connect():  # 3 and 4 are where it listens and answers
            low = (os.dup2(os.dup(to_child), 13), os.dup2(os.dup(from_child), 14))
            os.dup2(low[0], 3)
            os.dup2(low[1], 4)

        self._process = subprocess.Popen(
            [COMMAND, *OPTIONS, *options, f"--user-data-dir={profile.name}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=connect, env={**os.environ, "HOME": profile.name})
        os.close(to_child)
        os.close(from_child)
        at_end(self.close)

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    # --- Protocol --------------------------------------------------------------------------------

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                raise TimeoutError(f"no answer of {COMMAND} in {SECONDS} s")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise RuntimeError(f"{COMMAND} ended with status {self._process.wait()}")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        """The result of a method of the protocol. Events that arrive meanwhile are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session and not method.startswith("Target."):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if answer.get("sessionId") == self._session:
                self.events.append(answer)

    # --- Pages -----------------------------------------------------------------------------------

    def open(self, path, width=1400, height=1000, dark=False):
        """Loads a file and waits until it says that it is ready. Seconds that it took."""
        if self._session:
            self.call("Page.close")
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        start = time.monotonic()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        deadline = start + SECONDS
        while self.evaluate("document.documentElement?.dataset.ready ?? ''") != "yes":
            if time.monotonic() > deadline or self.problems():
                raise RuntimeError(f"{path} is not ready: {self.problems()}")
            time.sleep(0.02)
        return time.monotonic() - start

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def problems(self):
        """Errors and warnings on the console, and exceptions that nobody caught."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            elif event.get("method") == "Runtime.consoleAPICalled":
                found.append(str(parameters["args"]))
            elif event.get("method") == "Log.entryAdded":
                found.append(str(parameters["entry"]["text"]))
        return found

    def requests(self):
        """Returns all requests of the page, itself included."""
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def place(self, selector):
        """Where an element is, in the window, after scrolling to it: x, y, width, height."""
        return self.evaluate(f"(() => {{ const e = document.querySelector({selector!r}); "
                             "e.scrollIntoView({block: 'center'}); "
                             "const r = e.getBoundingClientRect(); "
                             "return [r.x, r.y, r.width, r.height]; })()")

    def point(self, x, y, kind="mouseMoved", **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.point(x, y, kind, button="left", clickCount=1)

    def wheel(self, x, y, delta):
        self.point(x, y, "mouseWheel", deltaX=0, deltaY=delta)

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key,
                      text=key if len(key) == 1 else "")

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(data["data"]))
