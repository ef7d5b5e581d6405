"""Names become C functions by C++, table and rule; a mistake in a table names itself."""

import pathlib
import unittest

from tests.simgpu.libraries import stubs

BLAS = stubs.LIBRARIES["cublas"]


class Stubs(unittest.TestCase):

    def function(self, name, table=""):
        source = stubs.source([name], stubs.read_calls(table), BLAS)
        return source.splitlines()[-1]

    def test_rules_by_name(self):
        self.assertIn("calloc", self.function("cublasCreate"))
        self.assertIn("free((void*)a0)", self.function("cublasDestroy"))
        self.assertIn("return 15;", self.function("cublasGetFavourite"))
        self.assertIn("return 15;", self.function("cublasThing_bufferSize"))
        self.assertIn("return 0;", self.function("cublasSgemm"))

    def test_the_table_goes_before_the_rules_and_its_first_line_before_others(self):
        table = "cublasGet[AB]  int@2=7  # why\ncublasGet*  return=1\n"
        self.assertIn("(Word a0, Word a1, Word a2)", self.function("cublasGetA", table))
        self.assertIn("*(int*)a2 = 7;", self.function("cublasGetA", table))
        self.assertIn("return 1;", self.function("cublasGetC", table))

    def test_actions(self):
        self.assertIn("*(size_t*)a1 = a0 + 1;", self.function("f", 'f size@1="a0 + 1"'))
        self.assertIn('*(const char**)a0 = "no name";', self.function("f", 'f text@0="no name"'))
        self.assertIn("*(void**)a3 = calloc", self.function("f", "f handle@3"))
        self.assertIn('const char* f(void) { simgpu_note_call("f"); return "x y"; }',
                      self.function("f", 'f says="x y"'))
        device = self.function("f", "f device@1,4")
        self.assertIn("Word a4)", device)
        self.assertIn('simgpu_run("f", stream_of(a0), 0, math, 0, 2, (void*)a1, (void*)a4)',
                      device)
        self.assertIn("return 13;", device)
        self.assertIn("*(Word*)a0 = a1;", self.function("cublasSetStream"))

    def test_work_has_its_operations_and_bytes(self):
        gemm = self.function("cublasDgemm", "cublasDgemm device@4 product@1,2,3=m(letter)")
        m, n, k = ("(double)(int)a1", "(double)(int)a2", "(double)(int)a3")
        self.assertIn("const int math = m('D');", gemm)
        self.assertIn(f", 2 * {m} * {n} * {k} * 1.0, math, ", gemm)
        batched = self.function("f", "f device@4 product@1,2,3,5=FP32")
        self.assertIn(f"2 * {m} * {n} * {k} * (double)(int)a5", batched)
        self.assertIn("Word a5)", batched)
        self.assertIn("Word a9)", self.function("f", "f device@4 product@1,2=m(a9)"))
        tensors = self.function("f", "f tensors@1,3 device@2")
        self.assertIn("simgpu_tensor_bytes((void*)a1) + simgpu_tensor_bytes((void*)a3)", tensors)

    def test_an_unknown_action_is_refused_by_name(self):
        for table in ("f nonsense@1=2", "f int@x=2", "f int=2", "f word"):
            with self.assertRaisesRegex(SystemExit, "f: no such action: .*README"):
                self.function("f", table)

    def test_a_function_belongs_to_the_library_with_the_longest_prefix(self):
        self.assertEqual(stubs.owner("cublasLtMatmul"), "cublasLt")
        self.assertEqual(stubs.owner("cublasCreate_v2"), "cublas")
        self.assertEqual(stubs.owner("__cudaRegisterFunction"), "cudart")
        self.assertIsNone(stubs.owner("nvmlInit"))

    def test_the_wheels_name_what_a_program_needs(self):
        names = stubs.names_in_tensorflow()
        for name in ("cudaMalloc", "cublasGemmEx", "cudnnBackendExecute", "ncclAllReduce"):
            self.assertIn(name, names)

    def test_every_table_is_that_of_a_library(self):
        tables = {path.stem for path in pathlib.Path("tests/simgpu/libraries").glob("*.calls")}
        self.assertEqual(tables, set(stubs.LIBRARIES))


if __name__ == "__main__":
    unittest.main()
