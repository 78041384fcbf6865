"""Every small mistake of a source can be made by its number alone, and says where it would show."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent

SOURCE = """
#include <cstdio>
#include <functional>
namespace rehearsal {
enum class Mode { slow, fast };
void twice(int& n) { n *= 2; }
void one_more(int& n) { n += 1; }
int joined(int tens, int ones) { return tens * 10 + ones; }

int statements() {
  int n = 3;
  one_more(n);
  twice(n);
  return n;
}
struct Point {
  int x = 0;
  int y = 0;
};
int fields() {
  Point point;
  point.x = 4;
  point.y = 2;
  point.x = point.y;
  point.y = 7;
  return point.x * 10 + point.y;
}
int condition(bool is_so) {
  if (is_so) return 1;
  return 0;
}
int both(bool first, bool second) { return first && second ? 1 : 0; }
int bounded(unsigned n, unsigned bound) { return n < bound ? 1 : 0; }
int chosen(Mode mode) { return mode == Mode::slow ? 1 : 0; }
int exchanged(int tens, int ones) { return joined(tens, ones); }
void trace_it(int n) { std::printf("%s", n < 0 ? "?" : ""); }
void told(int& n) {
  if (n > 0 && ++n > 1) trace_it(n);
}
int traced() {
  int n = 1;
  told(n);
  return n;
}
int counted() {
  int n = 0;
  for (int& one : {std::ref(n), std::ref(n)}) one_more(one);
  return n;
}
}  // namespace rehearsal
"""

MAIN = """
#include <cstdio>
#include "core/small.cc"
using namespace rehearsal;
int main() {
  std::printf("statements %d\\n", statements());
  std::printf("fields %d\\n", fields());
  std::printf("condition %d%d\\n", condition(false), condition(true));
  std::printf("both %d%d%d\\n", both(true, true), both(false, true), both(true, false));
  std::printf("bounded %d%d%d\\n", bounded(4, 5), bounded(5, 5), bounded(6, 5));
  std::printf("chosen %d%d\\n", chosen(Mode::slow), chosen(Mode::fast));
  std::printf("exchanged %d\\n", exchanged(1, 2));
  std::printf("counted %d\\n", counted());
  std::printf("traced %d\\n", traced());
}
"""


class Schemata(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        (cls.root / "core").mkdir()
        (cls.root / "core/small.cc").write_text(SOURCE)
        cls.mistakes = cls.generate()
        (cls.root / "copy/main.cc").write_text(MAIN)
        compiler = next(filter(shutil.which, ("clang++-19", "clang++", "g++")))
        subprocess.run([compiler, "-std=c++20", "-I", str(cls.root / "copy"), "-include",
                        str(HERE / "schemata.h"), "-o", str(cls.root / "main"),
                        str(cls.root / "copy/main.cc")], check=True)
        cls.right = cls.run_with(0)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def generate(cls, *words):
        subprocess.run(["/usr/bin/python3", str(HERE / "schemata.py"), "--root", str(cls.root),
                        "--out", str(cls.root / "copy"), *words,
                        str(cls.root / "core/small.cc"), "--", "-std=c++20"],
                       check=True, stdout=subprocess.DEVNULL)
        return json.loads((cls.root / "copy/small.json").read_text())

    @classmethod
    def run_with(cls, number, seen=None):
        environment = {**os.environ, "REHEARSAL_SCHEMA": str(number)}
        if seen is not None:
            environment["REHEARSAL_SCHEMA_SEEN"] = seen
        told = subprocess.run([cls.root / "main"], env=environment, check=True, text=True,
                              capture_output=True, timeout=60).stdout
        return dict(line.split() for line in told.splitlines())

    def made(self, line, kind, text):
        """What the program prints differently with the mistake of this kind at this text."""
        source_line = 1 + SOURCE.split("\n").index(line)
        numbers = [one["number"] for one in self.mistakes if one["line"] == source_line and
                   one["kind"] == kind and one["text"] == text]
        self.assertEqual(len(numbers), 1, (line, kind, text, self.mistakes))
        wrong = self.run_with(numbers[0])
        return {name: value for name, value in wrong.items() if value != self.right[name]}

    def test_the_source_is_right_while_none_is_made(self):
        self.assertEqual(self.right, {"statements": "8", "fields": "27", "condition": "01",
                                      "both": "100", "bounded": "100", "chosen": "10",
                                      "exchanged": "12", "counted": "2", "traced": "2"})

    def test_a_statement_is_left_out(self):
        self.assertEqual(self.made("  one_more(n);", "left out", "one_more(n);"),
                         {"statements": "6"})
        self.assertEqual(self.made("  for (int& one : {std::ref(n), std::ref(n)}) one_more(one);",
                                   "left out", "one_more(one);"), {"counted": "0"})

    def test_neighbours_are_exchanged(self):
        self.assertEqual(self.made("  one_more(n);", "exchanged with the next",
                                   "one_more(n); twice(n);"), {"statements": "7"})

    def test_fields_that_are_set_apart_are_not_exchanged(self):
        self.assertEqual(self.made("  point.y = 2;", "exchanged with the next",
                                   "point.y = 2; point.x = point.y;"), {"fields": "7"})
        self.assertNotIn("point.x = 4; point.y = 2;", [one["text"] for one in self.mistakes])

    def test_a_function_returns_early(self):
        self.assertEqual(self.made("int statements() {", "early return {}", "statements"),
                         {"statements": "0"})

    def test_a_condition_is_negated_or_held(self):
        line = "  if (is_so) return 1;"
        self.assertEqual(self.made(line, "negated", "is_so"), {"condition": "10"})
        self.assertEqual(self.made(line, "held true", "is_so"), {"condition": "11"})
        self.assertEqual(self.made(line, "held false", "is_so"), {"condition": "00"})

    def test_a_part_of_a_condition_is_held(self):
        line = "int both(bool first, bool second) { return first && second ? 1 : 0; }"
        self.assertEqual(self.made(line, "held true", "first"), {"both": "110"})
        self.assertEqual(self.made(line, "held true", "second"), {"both": "101"})

    def test_what_only_decides_about_a_trace_is_left_alone(self):
        line = "  if (n > 0 && ++n > 1) trace_it(n);"
        self.assertEqual(self.made(line, "held false", "n > 0"), {"traced": "1"})
        number = 1 + SOURCE.split("\n").index(line)
        conditions = {one["text"] for one in self.mistakes
                      if one["line"] == number and one["kind"] in ("negated", "held true")}
        self.assertEqual(conditions, {"n > 0"})

    def test_a_bound_is_moved(self):
        line = "int bounded(unsigned n, unsigned bound) { return n < bound ? 1 : 0; }"
        self.assertEqual(self.made(line, "bound higher", "n < bound"), {"bounded": "110"})
        self.assertEqual(self.made(line, "bound lower", "n < bound"), {"bounded": "000"})

    def test_a_number_is_moved(self):
        self.assertEqual(self.made("  int n = 3;", "one more", "int n = 3;"), {"statements": "10"})
        self.assertEqual(self.made("  int n = 3;", "one less", "int n = 3;"), {"statements": "6"})

    def test_an_enumerator_is_exchanged(self):
        line = "int chosen(Mode mode) { return mode == Mode::slow ? 1 : 0; }"
        self.assertEqual(self.made(line, "fast in its place", line), {"chosen": "01"})

    def test_arguments_are_exchanged(self):
        self.assertEqual(
            self.made("int exchanged(int tens, int ones) { return joined(tens, ones); }",
                      "arguments exchanged", "tens, ones"), {"exchanged": "21"})

    def test_what_is_made_is_what_would_have_shown(self):
        seen = self.root / "seen"
        seen.write_bytes(bytes(max(one["number"] for one in self.mistakes) + 4))
        self.run_with(0, str(seen))
        marks = seen.read_bytes()
        for one in self.mistakes:
            if self.run_with(one["number"]) != self.right:
                self.assertTrue(marks[one["number"]], one)

    def test_lines_are_left_out_and_numbers_begin_where_they_are_told(self):
        without = self.root / "without"
        line = 1 + SOURCE.split("\n").index("  one_more(n);")
        without.write_text(f"core/small.cc:{line}\n")
        try:
            mistakes = self.generate("--without", str(without), "--first", "500")
        finally:
            self.generate()
        self.assertEqual(min(one["number"] for one in mistakes), 500)
        self.assertNotIn(line, [one["line"] for one in mistakes])


if __name__ == "__main__":
    unittest.main()
