"""Feeds reports to tools/count_tests."""
import pathlib
import tempfile
import unittest

import script

count_tests = script.load("count_tests")

CASES = """<testsuites><testsuite>
  <testcase name="a" status="run" result="completed"/>
  <testcase name="b" status="run" result="completed"/>
  <testcase name="c" status="notrun" result="suppressed"/>
  {}
</testsuite></testsuites>"""
FAILED = '<testcase name="d" status="run" result="completed"><failure message="no"/></testcase>'
SKIPPED = '<testcase name="e" status="run" result="skipped"><skipped/></testcase>'


def programs(**statuses):
    entries = (f'<testcase name="{name}" status="{status}"/>' for name, status in statuses.items())
    return f"<testsuite>{''.join(entries)}</testsuite>"


class CountTestsTest(unittest.TestCase):
    def count(self, files):
        with tempfile.TemporaryDirectory() as root:
            script.write_tree(root, files)
            return count_tests.count_folder(pathlib.Path(root))

    def test_cases_are_counted_not_programs(self):
        self.assertEqual(self.count({
            "programs.junit": programs(x="run", y="run"),
            "x.xml": CASES.format(SKIPPED),
            "y.xml": CASES.format(""),
        }), (4, 0, 1))

    def test_failed_cases_are_counted(self):
        self.assertEqual(self.count({
            "programs.junit": programs(x="fail"),
            "x.xml": CASES.format(FAILED + FAILED),
        }), (2, 2, 0))

    def test_a_program_that_fails_after_its_cases_is_a_failure(self):
        self.assertEqual(self.count({
            "programs.junit": programs(x="fail"),
            "x.xml": CASES.format(""),
        }), (2, 1, 0))

    def test_a_program_that_crashed_leaves_no_report_or_half_of_one(self):
        self.assertEqual(self.count({"programs.junit": programs(x="fail")}), (0, 1, 0))
        self.assertEqual(self.count({
            "programs.junit": programs(x="fail"),
            "x.xml": "<testsuites><testsu",
        }), (0, 1, 0))

    def test_a_program_without_googletest_is_one_case(self):
        self.assertEqual(self.count({"programs.junit": programs(x="run")}), (1, 0, 0))

    def test_no_result_at_all_is_a_failure(self):
        self.assertEqual(self.count({}), (0, 1, 0))


if __name__ == "__main__":
    unittest.main()
