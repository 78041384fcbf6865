"""The end of `.ci/run` names what failed: of logs of CTest each failed test with its assertion and
the command that runs it alone, and of the tests that passed nothing."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parent.parent.parent
LINE = "-" * 58

GOOD = """[ RUN      ] Sum.OfTwo
[       OK ] Sum.OfTwo (1 ms)
"""
WRONG = """[ RUN      ] Sum.OfTwo
[       OK ] Sum.OfTwo (1 ms)
[ RUN      ] Sum.OfThree
sum_test.cc:7: Failure
Expected equality of these values:
  5
  6
[  FAILED  ] Sum.OfThree (1 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Sum.OfThree
"""
SEED = """[ RUN      ] Sum.HoldsForSeeds
sum_test.cc:9: Failure
a
b
c
d
e
f
g
h
REHEARSAL_SEED=17 sums --gtest_filter=Sum.HoldsForSeeds
[  FAILED  ] Sum.HoldsForSeeds (1 ms)
"""
ABORT = """[ RUN      ] Sum.OfAll
sum.cc:3: check failed: count > 0
"""
NO_CASES = "the fuzzer has found something\n"


def section(number, name, output, verdict):
    return f"""{number}/9 Testing: {name}
{number}/9 Test: {name}
Command: "/tree/build/asan/{name.split('.')[0]}" "word"
Directory: /tree
"{name}" start time: Jan 01 00:00 UTC
Output:
{LINE}
{output}<end of output>
Test time =   0.10 sec
{LINE}
Test {verdict}.
"{name}" end time: Jan 01 00:00 UTC
"""


def told(*logs):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, log in enumerate(logs):
            paths.append(pathlib.Path(folder) / str(number))
            paths[-1].write_text("Start testing: Jan 01 00:00 UTC\n" + log)
        return subprocess.run([sys.executable, ROOT / ".ci" / "what_failed.py", *paths], check=True,
                              stdout=subprocess.PIPE, text=True).stdout


class WhatFailed(unittest.TestCase):
    def test_nothing_is_told_of_tests_that_passed(self):
        self.assertEqual(told(section(1, "sums", GOOD, "Passed")), "")

    def test_an_assertion_and_the_command_that_runs_its_test_alone(self):
        self.assertEqual(told(section(1, "others", GOOD, "Passed") +
                              section(2, "sums.2", WRONG, "Failed")),
                         "--- sums.2, Sum.OfThree\n"
                         "    sum_test.cc:7: Failure\n"
                         "    Expected equality of these values:\n"
                         "      5\n"
                         "      6\n"
                         "    again: build/asan/sums word --gtest_filter=Sum.OfThree\n")

    def test_the_line_of_a_seed_however_far_behind_the_assertion(self):
        self.assertIn("    REHEARSAL_SEED=17 sums --gtest_filter=Sum.HoldsForSeeds\n",
                      told(section(1, "sums", SEED, "Failed")))

    def test_a_test_without_an_end_is_the_one_that_ended_the_process(self):
        self.assertEqual(told(section(1, "sums", GOOD + ABORT, "Failed")),
                         "--- sums, Sum.OfAll\n"
                         "    sum.cc:3: check failed: count > 0\n"
                         "    again: build/asan/sums word --gtest_filter=Sum.OfAll\n")

    def test_the_end_of_what_is_no_test_of_cases(self):
        self.assertEqual(told(section(1, "fuzz", NO_CASES, "Failed")),
                         "--- fuzz\n"
                         "    the fuzzer has found something\n"
                         "    again: build/asan/fuzz word\n")

    def test_a_failure_in_two_logs_is_told_once(self):
        log = section(1, "sums", WRONG, "Failed")
        self.assertEqual(told(log, log), told(log))


unittest.main()
