"""Every fact has one list, and the test detects a second one."""

import pathlib
import unittest

from tests.quality import house


class Tree(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        # Behind the link that Bazel made lies the whole tree.
        cls.root = pathlib.Path("allocator/thimble.h").resolve().parents[1]
        cls.files = house.sources(cls.root)


class OneListPerFact(Tree):

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


class OneParserOfOptions(Tree):

    def test_the_tree_has_one(self):
        self.assertEqual(house.parsers(self.files), house.PARSERS)

    def test_another_one_is_seen_in_any_language(self):
        for text in ('''
    pairs = (entry.partition(":") for entry in conf.split(",") if entry.strip())''', '''
  for (const absl::string_view entry : absl::StrSplit(conf, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits(':', 1));''', '''
    const std::size_t end = std::min(conf.find(',', begin), conf.size());
    const std::string entry = Trimmed(conf.substr(begin, end - begin));
    begin = end + 1;
    if (entry.empty()) continue;
    const std::size_t colon = std::min(entry.find(':'), entry.size());''', '''
    const entries = text.split(",").map((entry) => entry.split(":"));'''):
            with self.subTest(text=text):
                self.assertTrue(house.splits_options(text))

    def test_uses_are_no_parser(self):
        self.assertFalse(house.splits_options("""row.split(","); name.partition("=")"""))
        self.assertFalse(house.splits_options("""print("limit:1GiB,", options, ":")"""))

    def test_options_of_fronts_are_explained(self):
        for table, readme in house.FRONTS.items():
            keys = house.FRONT_OPTION.findall(self.files[table])
            self.assertTrue(keys, table)
            text = (self.root / readme).read_text()
            for key in keys:
                self.assertIn(f"`{key}`", text, f"{readme} does not explain it")


if __name__ == "__main__":
    unittest.main()
