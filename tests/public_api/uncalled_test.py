#!/usr/bin/python3
"""Goal: a public function that no scenario calls is named, and no other one. Method: a header and a
scenario of a few lines each."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "uncalled.py"
HEADER = """
namespace detail { void hidden(); }
class Thing {
 public:
  Thing(const Thing&) = delete;
  int used();
  int forgotten();
  class Inner { public: void lost(); };
 private:
  void own();
};
template <class T> class Box {
 public:
  T defined_elsewhere();
  T by_a_template();
};
template <class T> T Box<T>::defined_elsewhere() { return T(); }
void free_and_forgotten();
"""
SCENARIO = """
#include "core/api/thing.h"
template <class Any> int twice(Any& any) { return any.by_a_template(); }
int run(Thing& thing, Box<int>& box) { return thing.used() + box.defined_elsewhere() + twice(box); }
"""
FORGOTTEN = ["Thing::Inner::lost", "Thing::forgotten", "free_and_forgotten"]


class Uncalled(unittest.TestCase):
    def run_with(self, reasons):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in (("core/api/thing.h", HEADER), ("scenarios/one.cc", SCENARIO),
                               ("reasons.json", json.dumps(reasons))):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            command = {"directory": folder, "file": "scenarios/one.cc",
                       "command": f"c++ -std=c++20 -I{folder} -c scenarios/one.cc -o one.o"}
            (root / "compile_commands.json").write_text(json.dumps([command]))
            return subprocess.run(
                [sys.executable, SCRIPT, "--root", root, "--build", root, "--jobs", "1",
                 "--reasons", root / "reasons.json"],
                capture_output=True, text=True, check=False, timeout=60)

    def test_names_what_no_scenario_calls(self):
        run = self.run_with({})
        named = [line.split(" calls ")[1] for line in run.stdout.splitlines() if " calls " in line]
        self.assertEqual(named, FORGOTTEN, run.stdout + run.stderr)
        self.assertEqual(run.returncode, 1)

    def test_takes_reasons_and_no_needless_ones(self):
        reasons = {name: "so" for name in FORGOTTEN}
        run = self.run_with(reasons)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        run = self.run_with({**reasons, "Thing::used": "so"})
        self.assertEqual(run.returncode, 1)
        self.assertIn("Thing::used needs no reason", run.stdout)


if __name__ == "__main__":
    unittest.main()
