"""Growth is found where there is some, and only there; every figure sees what it is for."""

import os
import random
import threading
import unittest

from tests.soak.figures import figures
from tests.soak.figures import growth
from tests.soak.figures import grown

MIB = 1 << 20


def held(**changed):
    return {**dict.fromkeys(figures(), 0), **changed}


class Growth(unittest.TestCase):

    def test_what_leaks_is_found_below_the_noise_of_a_round(self):
        noise = random.Random(1)
        leaking = [100 * MIB + round_ * MIB + noise.randrange(5 * MIB) for round_ in range(100)]
        self.assertGreater(growth(leaking), 8 * MIB)

    def test_noise_is_none(self):
        for seed in range(100):
            noise = random.Random(seed)
            self.assertLessEqual(growth([noise.randrange(5, 9) for _ in range(24)]), 0)

    def test_the_first_tenth_does_not_count(self):
        self.assertEqual(growth([1] * 4 + [9] * 36), 0)
        self.assertGreater(growth([1] * 24 + [9] * 16), 0)

    def test_stock_may_grow_as_well(self):
        slow = [held(threads=i // 2) for i in range(40)]
        fast = [held(threads=2 * i) for i in range(40)]
        self.assertEqual(grown(slow, slow), {})
        self.assertEqual(list(grown(fast, slow)), ["threads"])
        self.assertEqual(grown(slow, fast), {})
        self.assertEqual(list(grown(slow, [held()] * 40)), ["threads"])

    def test_threads_forgive_nothing_and_memory_a_hundredth(self):
        before, after = [held(threads=9, private=1000)] * 24, [held(threads=10, private=1009)] * 16
        self.assertEqual(list(grown(before + after, [held()] * 40)), ["threads"])
        after = [held(threads=9, private=1020)] * 16
        self.assertEqual(list(grown(before + after, [held()] * 40)), ["private"])


class Figures(unittest.TestCase):

    def test_shared_memory_counts_even_if_nobody_maps_it(self):
        before = figures()
        descriptor = os.memfd_create("figures")
        os.write(descriptor, b"x" * MIB)
        after = figures()
        os.close(descriptor)
        self.assertEqual(after["memfd"] - before["memfd"], MIB)
        self.assertEqual(after["descriptors"] - before["descriptors"], 1)

    def test_threads(self):
        before, stop = figures()["threads"], threading.Event()
        thread = threading.Thread(target=stop.wait)
        thread.start()
        self.assertEqual(figures()["threads"], before + 1)
        stop.set()
        thread.join()

    def test_memory(self):
        before = figures()
        kept = bytearray(os.urandom(64 * MIB))
        after = figures()
        for name in ("rss", "private"):
            self.assertGreater(after[name] - before[name], 60 * MIB, name)
        del kept


if __name__ == "__main__":
    unittest.main()
