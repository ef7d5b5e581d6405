"""Every fact has one list, and a second one would be seen."""

import pathlib
import unittest

from tests.quality import house


class OneListPerFact(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        # Behind the link that Bazel made lies the whole tree.
        cls.files = house.sources(pathlib.Path("allocator/thimble.h").resolve().parents[1])

    def test_the_tree_has_one(self):
        for fact, (own, _) in house.FACTS.items():
            with self.subTest(fact=fact):
                self.assertGreater(len(house.names_of(fact, self.files)), 15)
                self.assertEqual(house.places(fact, self.files), [own])

    def test_another_one_is_seen_in_any_language(self):
        names = house.names_of("statistics", self.files)[:20]
        for text in ("\n".join(f"  std::uint64_t {name};" for name in names),
                     f"NAMES = ({', '.join(repr(name) for name in names)})".replace("'", '"'),
                     ", ".join(name.upper() for name in names) + " = range(20)",
                     f"const KIND = {{{', '.join(f'{name}: 1' for name in names)}}};"):
            with self.subTest(text=text):
                self.assertTrue(house.lists(names, text))

    def test_uses_are_no_list(self):
        names = house.names_of("statistics", self.files)
        self.assertFalse(house.lists(names, "\n".join(f"stats.{name} = 1;" for name in names)))
        self.assertFalse(house.lists(names, "\n".join(map('"{}"'.format, names[:len(names) // 2]))))
        spread = ("\n" * 9).join(map('"{}"'.format, names))
        self.assertFalse(house.lists(names, spread))


if __name__ == "__main__":
    unittest.main()
