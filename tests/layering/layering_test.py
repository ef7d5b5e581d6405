"""Every include of the core and the plugins points down, and nothing steps around base/."""

import pathlib
import unittest

from tests.layering import layers

FOLDERS = ("allocator",) + layers.PLUGINS


def sources():
    for folder in FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".c", ".cu"):
                yield str(path), path.read_text()


class TheTree(unittest.TestCase):

    def test_keeps_the_law(self):
        files = list(sources())
        seen = {str(pathlib.Path(path).parent) for path, _ in files if path.startswith("allocator/")}
        # Bazel's link leads to the whole tree, also to files that no BUILD lists yet.
        root = pathlib.Path("allocator/thimble.h").resolve().parent
        self.assertEqual(seen, {str(path.parent.relative_to(root.parent))
                                for path in root.rglob("*.h")},
                         "a folder is missing in tests/layering/BUILD")
        self.assertGreater(len(files), 60)
        self.assertEqual({path.split("/")[0] for path, _ in files}, set(FOLDERS))
        wrong = [
            f"{path}:{number}: {what}"
            for path, text in files
            for number, what in layers.violations(path, text)
        ]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))


class TheLaw(unittest.TestCase):
    """The check must find files that break the law."""

    def what(self, path, line):
        return [what for _, what in layers.violations(path, "// first line\n" + line + "\n")]

    def assert_wrong(self, path, line, text):
        found = self.what(path, line)
        self.assertEqual(len(found), 1, f"{path}: {line}")
        self.assertIn(text, found[0])

    def test_refuses_includes_that_point_up_or_aside(self):
        for path, included in (
            ("allocator/base/a.h", "allocator/driver/driver.h"),
            ("allocator/driver/a.cc", "allocator/vmm/home_space.h"),
            ("allocator/vmm/a.h", "allocator/stitch/heap.h"),
            ("allocator/stitch/a.h", "allocator/plan/plan.h"),
            ("allocator/plan/a.h", "allocator/swap/swap.h"),
            ("allocator/swap/a.h", "allocator/plan/plan.h"),
            ("allocator/observe/a.h", "allocator/arena/arena.h"),
            ("allocator/arena/a.h", "allocator/thimble.h"),
            ("allocator/offline/harmony/a.h", "allocator/driver/driver.h"),
            ("allocator/arena/a.h", "allocator/offline/logs/replay.h"),
            ("allocator/offline/logs/a.h", "allocator/offline/tools/tools.h"),
        ):
            self.assert_wrong(path, f'#include "{included}"', included)

    def test_allows_includes_that_point_down(self):
        for path, included in (
            ("allocator/arena/a.h", "allocator/stitch/heap.h"),
            ("allocator/arena/a.h", "allocator/arena/space.h"),
            ("allocator/offline/harmony/a.h", "allocator/base/bytes.h"),
            ("allocator/offline/tools/a.h", "allocator/arena/options.h"),
            ("allocator/offline/thimble_offline.cc", "allocator/offline/tools/tools.h"),
            ("allocator/thimble.cc", "allocator/arena/arena.h"),
            ("tf_plugin/a.cc", "allocator/thimble.h"),
            ("tf_plugin/a.cc", "tf_plugin/b.h"),
            ("allocator/base/a.h", "absl/status/status.h"),
        ):
            self.assertEqual(self.what(path, f'#include "{included}"'), [])

    def test_keeps_plugins_outside_and_cuda_inside(self):
        self.assert_wrong("tf_plugin/a.cc", '#include "allocator/arena/arena.h"', "thimble.h alone")
        self.assert_wrong("xla_plugin/a.cc", '#include "tf_plugin/b.h"', "nothing includes a plugin")
        self.assert_wrong("allocator/arena/a.cc", '#include "tests/race/crew.h"', "tests")
        self.assert_wrong("allocator/vmm/a.cc", "#include <cuda.h>", "sees CUDA")
        self.assert_wrong("allocator/arena/a.cc", '#include "nvtx3/nvToolsExt.h"', "sees CUDA")
        self.assertEqual(self.what("allocator/driver/a.cc", "#include <cuda.h>"), [])

    def test_refuses_new_folders_until_they_have_a_place(self):
        self.assert_wrong("allocator/extra/a.h", '#include "allocator/base/bytes.h"', "no layer")

    def test_keeps_locks_and_ends_in_base(self):
        self.assert_wrong("allocator/vmm/a.h", "  std::mutex mutex_;", "base/mutex.h")
        self.assert_wrong("allocator/vmm/a.h", "std::lock_guard<std::mutex> lock(m);", "ranks")
        self.assert_wrong("allocator/arena/a.cc", "  std::abort();", "THIMBLE_CHECK")
        self.assert_wrong("allocator/thimble.cc", "  _exit(1);", "THIMBLE_CHECK")
        self.assertEqual(self.what("allocator/arena/a.cc", "// never abort() or exit()"), [])
        self.assertEqual(self.what("allocator/arena/a.cc", 'Say("exit(1) is wrong");'), [])
        self.assertEqual(self.what("allocator/base/mutex.h", "  std::mutex mutex_;"), [])


if __name__ == "__main__":
    unittest.main()
