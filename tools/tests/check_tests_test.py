"""Feeds trees and build descriptions to tools/check_tests."""
import pathlib
import tempfile
import unittest

import script

check_tests = script.load("check_tests")


class CheckTestsTest(unittest.TestCase):
    def errors_of(self, files, objects, programs):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name).resolve()
            script.write_tree(root, files)
            targets = check_tests.compiled(
                {"directory": str(root), "file": source, "command": f"c++ -o {output} -c {source}"}
                for source, output in objects.items())
            return list(check_tests.check(root, targets, programs))

    def test_compiled_and_registered_is_fine(self):
        self.assertEqual(self.errors_of(
            {"src/base/a_test.cc": "TEST(A, B) {}\n"},
            {"src/base/a_test.cc": "src/base/CMakeFiles/base_test.dir/a_test.cc.o"},
            {"base_test"}), [])

    def test_source_that_nothing_compiles(self):
        errors = self.errors_of({"tests/x/a_test.cc": ""}, {}, {"base_test"})
        self.assertEqual(errors, ["tests/x/a_test.cc is compiled by no target"])

    def test_program_that_nothing_runs(self):
        errors = self.errors_of(
            {"src/base/a_test.cc": ""},
            {"src/base/a_test.cc": "src/base/CMakeFiles/lost_test.dir/a_test.cc.o"},
            {"base_test"})
        self.assertEqual(len(errors), 1)
        self.assertIn("lost_test", errors[0])

    def test_disabled_case(self):
        for text in ("TEST(A, DISABLED_B) {}", "TEST_F(DISABLED_A, B) {}", "TEST_P(A,\n  DISABLED_B) {}"):
            errors = self.errors_of(
                {"src/base/a_test.cc": text},
                {"src/base/a_test.cc": "src/base/CMakeFiles/base_test.dir/a_test.cc.o"},
                {"base_test"})
            self.assertEqual(errors, ["src/base/a_test.cc has a disabled test"])


if __name__ == "__main__":
    unittest.main()
