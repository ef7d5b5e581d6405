"""A pytest plugin that records how each test ends, and resumes where a crash ended the last run.

Random numbers are seeded before every test, so that a test that draws its input draws the same one
in every mode.
"""

import os
import re
import zlib

import pytest

import recording

MATCH = "OUTSIDE_MATCH"  # a regular expression; only tests with such a name run


def name_of(nodeid):
    """The path from keras/src on, independent of the installation."""
    return nodeid.rpartition("keras/src/")[2]


class Plugin:

    def __init__(self):
        self._recorder = recording.Recorder()
        self._answers = {}

    def pytest_collection_modifyitems(self, items):
        done = recording.Record(os.environ[recording.VARIABLE]).tests
        match = re.compile(os.environ.get(MATCH, ""))
        items[:] = [item for item in items if name_of(item.nodeid) not in done
                    and match.search(name_of(item.nodeid))]

    def pytest_collectreport(self, report):
        if report.failed:
            self._recorder.test(name_of(report.nodeid), "not collected",
                                said=report.longreprtext[-2000:])

    def pytest_runtest_logstart(self, nodeid):
        self._answers = {}
        self._recorder.start(name_of(nodeid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        import keras
        keras.utils.set_random_seed(zlib.crc32(name_of(item.nodeid).encode()))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        del item
        report = (yield).get_result()
        if report.failed:
            self._answers[report.when] = (f"failed: {call.excinfo.typename}", report.longreprtext)
        elif report.skipped:
            self._answers[report.when] = ("skipped", str(report.longrepr))
        elif report.when == "call":
            self._answers[report.when] = ("passed", "")

    def pytest_runtest_logfinish(self, nodeid):
        texts = "\n".join(text for _, text in self._answers.values())
        answer = ", ".join(dict.fromkeys(answer for answer, _ in self._answers.values()))
        self._recorder.test(name_of(nodeid), answer, said=texts[-2000:])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        self._recorder.end(**recording.arena_figures())
        session.exitstatus = 0  # what failed is written down; another status would be a crash


def pytest_configure(config):
    config.pluginmanager.register(Plugin())
