"""Feeds small trees to tools/check_cases."""
import pathlib
import tempfile
import unittest

import script

check_cases = script.load("check_cases")


class CheckCasesTest(unittest.TestCase):
    def check(self, test):
        with tempfile.TemporaryDirectory() as root:
            script.write_tree(root, {
                "docs/cases.md": f"| C1-01 | late | `src/a_test.cc: {test}` |\n",
                "src/a_test.cc": "TEST_F(LateTest,\n       IsWaitedFor) {  // C1-01\n}\n"})
            return list(check_cases.check(pathlib.Path(root)))

    def test_a_test_that_exists_is_found(self):
        self.assertEqual(self.check("LateTest.IsWaitedFor"), [])

    def test_a_test_that_was_renamed_is_named(self):
        self.assertIn("LateTest.IsWaited", self.check("LateTest.IsWaited")[0])


if __name__ == "__main__":
    unittest.main()
