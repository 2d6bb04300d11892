"""A headless Chromium, driven over a pipe (Chrome DevTools Protocol): a page's errors, values of expressions, screenshots."""
import base64, fcntl, json, os, select, shutil, subprocess, tempfile, time


def find():
    """Returns the path of a Chromium ($CHROMIUM if set), or None."""
    for name in filter(None, (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "chrome")):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    def __init__(self, path, seconds=60):
        self.seconds, self.next, self.buffer, self.events, self.session = seconds, 0, b"", [], None
        self.profile = tempfile.TemporaryDirectory(prefix="cosmati-browser-", ignore_cleanup_errors=True)
        # The browser reads commands from descriptor 3 and answers at descriptor 4.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (*os.pipe(), *os.pipe())]
        theirs_in, self.to, self.of, theirs_out = ends
        # --no-sandbox: tests may run as root in containers, which have no sandbox; the pages are our own.
        self.process = subprocess.Popen(
            [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--hide-scrollbars",
             "--no-first-run", "--user-data-dir=" + self.profile.name],
            close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: (os.dup2(theirs_in, 3), os.dup2(theirs_out, 4)))
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _message(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.of], [], [], left)[0]:
                raise TimeoutError(f"the browser has not answered within {self.seconds} s")
            part = os.read(self.of, 1 << 16)
            if not part:
                raise EOFError(f"the browser has ended, exit status {self.process.wait(5)}")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.next += 1
        command = {"id": self.next, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + self.seconds
        while True:
            message = self._message(until)
            if message.get("id") == self.next:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(self, path, width, height=900, scheme="light", media="screen"):
        """Loads a file; returns the page's errors, and every address that it requested besides its own."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = []
        address = "file://" + os.path.abspath(path)
        failure = self.call("Page.navigate", url=address).get("errorText")
        until = time.monotonic() + self.seconds
        while not failure and not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message(until))
        self.value("0")  # all earlier messages have arrived
        found = [failure] if failure else []
        for event in self.events:
            method, told = event["method"], event.get("params", {})
            if method == "Runtime.exceptionThrown" or method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(told)[:500])
            elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                found.append(told["entry"]["text"])
            elif method == "Network.requestWillBeSent" and told["request"]["url"] != address and not told["request"]["url"].startswith("data:"):
                found.append("asked for " + told["request"]["url"])
        return found

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self, path):
        data = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, EOFError, TimeoutError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.of)
        self.profile.cleanup()
