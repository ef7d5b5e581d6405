"""Sums up what `./dev test` ran: one line per failure, then 'N passed, N failed'.

Reads a folder of Bazel event files (NAME.events) and verdicts of other checks (NAME.check). The
exit status of Bazel alone is not enough: a test that skips itself passes for Bazel, but here a
skip is a failure unless it says that it needs a real GPU.
"""

import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree
from urllib.request import url2pathname

GPU = "needs a real GPU"
# How unittest and pytest mention skips. GoogleTest writes them into its XML.
SKIP_IN_LOG = re.compile(r"\bskipped=[1-9]|\b[1-9]\d* skipped\b")


class Tally:
    def __init__(self):
        self.passed = 0
        self.failures = []
        self.needs_gpu = []

    def skip(self, name, reason):
        if GPU in reason:
            self.needs_gpu.append(name)
        else:
            self.failures.append(f"{name}: skipped without '{GPU}'")

    def test_case(self, name, case):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            self.failures.append(name)
        elif skipped is not None:
            self.skip(name, skipped.get("message", "") + (skipped.text or ""))
        elif case.get("status") != "notrun":
            self.passed += 1

    def test_result(self, name, result):
        """One run of one test program: as many cases as it wrote down."""
        files = {
            output["name"]: pathlib.Path(url2pathname(output["uri"][len("file://"):]))
            for output in result.get("testActionOutput", [])
        }
        failures_before = len(self.failures)
        cases = []
        if "test.xml" in files:
            cases = list(ElementTree.parse(files["test.xml"]).iter("testcase"))
        log = files["test.log"].read_text(errors="replace") if "test.log" in files else ""
        # Where the program wrote no XML, Bazel did: a single case, without a class.
        if not any("classname" in case.attrib for case in cases) and SKIP_IN_LOG.search(log):
            self.skip(name, log)
        else:
            for case in cases:
                parts = [case.get("classname"), case.get("name")]
                self.test_case(f"{name} {'.'.join(filter(None, parts))}", case)
        if result["status"] != "PASSED" and len(self.failures) == failures_before:
            self.failures.append(f"{name}: {result['status'].lower()}")

    def bazel_run(self, run, events):
        failures_before = len(self.failures)
        exit_code = "no verdict"
        for event in events:
            identity = event["id"]
            if "testResult" in event:
                self.test_result(f"{run} {identity['testResult']['label']}", event["testResult"])
            elif "targetCompleted" in identity and not event.get("completed", {}).get("success"):
                self.failures.append(f"{run} {identity['targetCompleted']['label']}: not built")
            elif "finished" in event:
                exit_code = event["finished"]["exitCode"]["name"]
        # A configuration may have no test tagged for it.
        if exit_code not in ("SUCCESS", "NO_TESTS_FOUND") and len(self.failures) == failures_before:
            self.failures.append(f"{run}: bazel says {exit_code}")

    def check(self, name, verdict):
        if verdict == "passed":
            self.passed += 1
        else:
            self.failures.append(name)


def main():
    tally = Tally()
    for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        if path.suffix == ".events":
            lines = path.read_text().splitlines()
            tally.bazel_run(path.stem, [json.loads(line) for line in lines])
        else:
            tally.check(path.stem, path.read_text().strip())
    if tally.needs_gpu:
        print(f"not run here: {GPU}", *tally.needs_gpu, sep="\n  ")
    if tally.failures:
        print("failed", *tally.failures, sep="\n  ")
    print(f"{tally.passed} passed, {len(tally.failures)} failed")
    return 1 if tally.failures or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
