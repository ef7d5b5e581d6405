"""`./dev coverage` adds up right, and `./dev mutants` changes behaviour and nothing else."""

import pathlib
import tempfile
import textwrap
import unittest

from tests.quality import coverage
from tests.quality import lcov
from tests.quality import operators
from tests.quality import sample
from tests.quality import trial
from tests.quality import verdicts

LCOV = """\
SF:allocator/vmm/a.cc
FN:1,a
DA:1,3
DA:2,0
DA:3,1
DA:4,0
BRDA:3,0,0,1
BRDA:3,0,1,-
end_of_record
SF:allocator/vmm/b.h
DA:7,0
end_of_record
SF:allocator/vmm/b.h
DA:7,2
BRDA:7,0,0,0
BRDA:7,0,1,5
end_of_record
SF:allocator/arena/c.cc
DA:1,1
end_of_record
SF:tests/unit/a_test.cc
DA:1,0
end_of_record
"""

SOURCE = """\
#if LEVEL > 1
// a < b && c
Bytes Larger(Bytes a, Bytes b) {
  /* a + 1
     == b */
  THIMBLE_CHECK(a < b && a + 1 > 0,
                "a < b");
  Log("1 + 1 == 2");
  const char c = '<';
  return a < 1'000 ? a : b;
}

void Thing::CheckInvariants() const {
  if (a_ == 0) Fail();
}
"""


def changes(text, operator=None):
    """(before, after) of all mutants, or those of an operator."""
    return {(m.before, m.after) for m in operators.mutants("a.cc", textwrap.dedent(text))
            if operator in (None, m.operator)}


class Coverage(unittest.TestCase):

    def setUp(self):
        self.sources = lcov.read(LCOV)
        self.sums = lcov.by_folder(self.sources, ("vmm", "arena"))

    def test_lines_and_branches_are_added_up_by_folder(self):
        self.assertEqual(self.sums["vmm"], lcov.Sum(5, 3, 4, 2))
        self.assertEqual(self.sums["arena"], lcov.Sum(1, 1, 0, 0))
        self.assertEqual(self.sums["all"], lcov.Sum(6, 4, 4, 2))

    def test_the_table_and_the_verdict(self):
        self.assertEqual(list(lcov.table(self.sums)), [
            "folder     lines   covered  branches   covered",
            "vmm            5    60.0 %         4    50.0 %",
            "arena          1   100.0 %         0   100.0 %",
            "all            6    66.7 %         4    50.0 %"])
        self.assertEqual(lcov.below(self.sums, 90), ["vmm", "all"])
        self.assertEqual(lcov.below(self.sums, 60), [])

    def test_missing_lines_are_ranges(self):
        self.assertEqual(self.sources["allocator/vmm/a.cc"].missing(), [2, 4])
        self.assertEqual(coverage.ranges([2, 4, 5, 6, 9]), "2, 4-6, 9")


class Operators(unittest.TestCase):

    def test_only_behaviour_changes(self):
        self.assertEqual(changes(SOURCE), {
            ('Log("1 + 1 == 2");', ";"),
            ("return a < 1'000 ? a : b;", "return a <= 1'000 ? a : b;")})

    def test_code_keeps_its_place(self):
        code = operators.code_of(SOURCE)
        self.assertEqual([len(line) for line in code.splitlines()],
                         [len(line) for line in SOURCE.splitlines()])

    def test_templates_pointers_and_references_are_no_operators(self):
        self.assertEqual(changes("""
            template <typename T>
            void Foo(std::vector<T>&& a, const T* b, T& c);
        """), set())

    def test_each_operator(self):
        for operator, before, after in (
                ("relation", "return a <= b;", "return a < b;"),
                ("arithmetic", "x = a * b;", "x = a / b;"),
                ("logic", "return a &&", "return a ||"),
                ("negation", "return !a.ok();", "return a.ok();"),
                ("order", "x = std::min<Bytes>(a, b);", "x = std::max<Bytes>(a, b);"),
                ("truth", "return true;", "return false;"),
                ("jump", "continue;", "break;"),
                ("count", "++mappings_;", "--mappings_;"),
                ("constant", "x = 8;", "x = 9;"),
                ("constant", "x = 8;", "x = 7;"),
                ("condition", "if (a(b) == c) return;", "if (!(a(b) == c)) return;"),
                ("condition", "if (const int a = b(); a) {", "if (const int a = b();!(a)) {"),
                ("deletion", "if (a) list[1]->Drop(b);", "if (a) {}"),
                ("deletion", "total.bytes += n;", ";")):
            with self.subTest(before):
                self.assertIn((before, after), changes(before, operator))

    def test_declarations_and_parts_of_statements_are_not_deleted(self):
        for text in ("const int a = b();", "int a(3);", "return a();", "x =\n    Call(a);"):
            self.assertEqual(changes(text, "deletion"), set(), text)

    def test_initial_values_of_members_stay(self):
        for text in ("  Bytes bytes = 0;\n", "  bool freed_ = false;\n"):
            self.assertEqual(list(operators.mutants("a.h", text)), [], text)
        for text in ("  static constexpr int kWalk = 24;\n", "  bytes = 0;\n"):
            self.assertNotEqual(list(operators.mutants("a.h", text)), [], text)

    def test_a_mutant_is_one_line_of_the_file(self):
        text = "{\n  ++a;\n  ++a;\n}\n"
        found = [m for m in operators.mutants("a.cc", text) if m.operator == "count"]
        self.assertEqual([operators.applied(m, text) for m in found],
                         ["{\n  --a;\n  ++a;\n}\n", "{\n  ++a;\n  --a;\n}\n"])
        self.assertNotEqual(found[0].key, found[1].key)
        with self.assertRaises(ValueError):
            operators.applied(found[0], "{\n  ++b;\n}\n")


class Trial(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.root = self.folder / "root"
        self.source = self.root / "allocator" / "vmm" / "a.cc"
        self.source.parent.mkdir(parents=True)
        self.source.write_text("int F(int a, int b) {\n  return a < b;\n}\n"
                               "int G(int a, int b) {\n  return a + b;\n}\n")

    def mutants(self, seed=1):
        return sample.ordered(self.root, "vmm", seed)

    def test_the_sample_is_the_same_for_a_seed_and_survives_edits_elsewhere(self):
        keys = [mutant.key for mutant in self.mutants()]
        self.assertEqual(len(keys), 2)
        self.assertTrue(any([m.key for m in self.mutants(seed)] != keys for seed in range(9)))
        self.source.write_text("// new\n" + self.source.read_text())
        self.assertEqual([mutant.key for mutant in self.mutants()], keys)
        self.assertEqual(sample.shares(7, ("a", "b", "c")), {"a": 3, "b": 2, "c": 2})

    def test_a_mutant_is_applied_in_a_copy_and_taken_back(self):
        before = self.source.read_text()
        tree = trial.Tree(self.root, self.folder)
        copy = tree.path / "allocator" / "vmm" / "a.cc"
        with self.assertRaises(KeyboardInterrupt), tree.mutated(self.mutants()[0]):
            self.assertNotEqual(copy.read_text(), before)
            self.assertEqual(self.source.read_text(), before)
            raise KeyboardInterrupt
        self.assertEqual(copy.read_text(), before)

    def test_the_copy_follows_the_tree(self):
        first = trial.Tree(self.root, self.folder).digest
        (self.root / "README.md").write_text("no code")
        tree = trial.Tree(self.root, self.folder)
        self.assertEqual(tree.digest, first)
        self.assertTrue((tree.path / "README.md").exists())
        (self.root / "README.md").unlink()
        self.source.write_text("int F();\n")
        tree = trial.Tree(self.root, self.folder)
        self.assertNotEqual(tree.digest, first)
        self.assertFalse((tree.path / "README.md").exists())
        self.assertEqual((tree.path / "allocator/vmm/a.cc").read_text(), "int F();\n")

    def test_near_and_cheap_tests_come_first(self):
        seconds = {"//tests/unit:a_test": 0.1, "//tests/unit:heap_test": 0.2,
                   "//tests/model:b_test": 3, "//tests/model:c_test": 30}
        self.assertEqual(
            trial.batches(seconds, seconds, "allocator/stitch/heap.cc", "//tests/model:b_test"),
            [["//tests/model:b_test"], ["//tests/unit:heap_test"], ["//tests/unit:a_test"],
             ["//tests/model:c_test"]])

    def test_which_test_failed(self):
        said = ("//tests/unit:a_test                 PASSED in 0.1s\n"
                "//tests/unit:b_test                 FAILED in 1 out of 4 in 0.1s\n"
                "//tests/unit:c_test                 TIMEOUT in 60.0s\n"
                "//tests/unit:d_test                 FAILED TO BUILD\n")
        self.assertEqual(trial.FAILED.findall(said), ["//tests/unit:b_test", "//tests/unit:c_test"])

    def test_kills_are_kept_with_the_file_and_survivals_with_the_tree(self):
        path = self.folder / "results.jsonl"
        tree = trial.Tree(self.root, self.folder)
        first, second = self.mutants()
        verdicts.Results(path).add(first, tree, verdicts.KILLED, "//tests/unit:a_test")
        verdicts.Results(path).add(second, tree, verdicts.SURVIVED, None)
        results = verdicts.Results(path)
        self.assertEqual(results.of(first, tree)["outcome"], verdicts.KILLED)
        self.assertEqual(results.of(second, tree)["outcome"], verdicts.SURVIVED)
        (self.root / "test.cc").write_text("TEST()")
        tree = trial.Tree(self.root, self.folder)
        self.assertEqual(results.of(first, tree)["outcome"], verdicts.KILLED)
        self.assertIsNone(results.of(second, tree))
        self.source.write_text("// new\n" + self.source.read_text())
        self.assertIsNone(results.of(first, trial.Tree(self.root, self.folder)))
        self.assertEqual(results.killer(first), "//tests/unit:a_test")
        self.assertIsNone(results.killer(second))

    def test_survivors_are_explained_or_fail(self):
        first, second = self.mutants()
        results = verdicts.Results(self.folder / "results.jsonl")
        tree = trial.Tree(self.root, self.folder)
        rows = [results.add(first, tree, verdicts.SURVIVED, None)]
        rows += [results.add(second, tree, verdicts.KILLED, "//tests/unit:a_test")] * 9
        why = {(first.path, first.before, first.after): "the same"}
        self.assertFalse(verdicts.is_well(rows, {}))
        self.assertTrue(verdicts.is_well(rows, why))
        self.assertFalse(verdicts.is_well(rows[:4], why))
        self.assertIn("a test is missing", "".join(verdicts.survivors(rows, {})))
        self.assertIn("the same", "".join(verdicts.survivors(rows, why)))
        self.assertEqual(list(verdicts.table(rows))[-1],
                         "all            10       9   90.0 %")

    def test_explanations_must_still_apply(self):
        first, second = self.mutants()
        results = verdicts.Results(self.folder / "results.jsonl")
        tree = trial.Tree(self.root, self.folder)
        rows = [results.add(first, tree, verdicts.SURVIVED, None),
                results.add(second, tree, verdicts.KILLED, "//tests/unit:a_test")]
        path = self.folder / "survivors.csv"
        path.write_text("path,before,after,why\n" + "".join(
            f"{place},{before},{after},why\n" for place, before, after in (
                (first.path, first.before, first.after),
                (second.path, second.before, second.after),
                (first.path, "return c;", "return d;"),
                ("allocator/vmm/gone.cc", "return c;", "return d;"))))
        self.assertEqual(
            list(verdicts.stale(self.root, verdicts.explanations(path), rows)),
            [f"{second.path}: '{second.before}' is killed",
             f"{first.path}: no line is 'return c;'",
             "allocator/vmm/gone.cc: no line is 'return c;'"])


if __name__ == "__main__":
    unittest.main()
