"""Feeds small trees to tools/check_cases."""
import pathlib
import tempfile
import unittest

import script

check_cases = script.load("check_cases")


class CheckCasesTest(unittest.TestCase):
    def check(self, test, case="C1-01", rows=None):
        with tempfile.TemporaryDirectory() as root:
            script.write_tree(root, {
                "docs/cases.md": rows or f"| {case} | late | `src/a_test.cc: {test}` |\n",
                "src/a_test.cc": "TEST_F(LateTest,\n       IsWaitedFor) {  // C1-01\n}\n"})
            return list(check_cases.check(pathlib.Path(root)))

    def test_a_test_that_exists_is_found(self):
        self.assertEqual(self.check("LateTest.IsWaitedFor"), [])

    def test_a_test_that_was_renamed_is_named(self):
        self.assertIn("LateTest.IsWaited", self.check("LateTest.IsWaited")[0])

    def test_a_test_must_bear_the_id_of_its_case(self):
        self.assertIn("does not name C1-02", self.check("LateTest.IsWaitedFor", case="C1-02")[0])

    def test_what_is_no_test_is_named(self):
        self.assertIn("no test", self.check("", rows="| C1-01 | late | `src/a_test.h: A.B` |\n")[0])

    def test_a_file_without_cases_is_an_error(self):
        self.assertEqual(len(self.check("", rows="nothing\n")), 1)


if __name__ == "__main__":
    unittest.main()
