"""Prints what failed in logs of CTest: for each failed test its assertions, and the command that
runs it alone.

usage: what_failed.py LOG…
"""

import re
import sys

LINES_OF_ASSERTION = 8
LINES_OF_END = 15
WIDTH = 300


def sections(log):
    """The tests of a log of CTest: name, command and output of each that did not pass."""
    for part in re.split(r"(?m)^\d+/\d+ Testing: ", log)[1:]:
        name = part.splitlines()[0]
        command = re.search(r"(?m)^Command: (.*)$", part)
        directory = re.search(r"(?m)^Directory: (.*)$", part)
        if re.search(r"(?m)^Test Passed\.$", part) or command is None:
            continue
        words = re.findall(r'"([^"]*)"', command.group(1))
        folder = directory.group(1) + "/" if directory else ""
        words = [word.removeprefix(folder) for word in words]
        output = part.split("\n" + "-" * 58 + "\n", 1)[-1].split("\n<end of output>")[0]
        yield name, " ".join(words), output.splitlines()


def cases(lines):
    """The tests of GoogleTest in an output that failed or had no end: name and lines of each."""
    begun = None
    for number, line in enumerate(lines):
        if line.startswith("[ RUN      ] "):
            begun = (line.split("] ")[1], number + 1)
        elif begun and line.startswith("[       OK ] " + begun[0]):
            begun = None
        elif begun and re.match(r"\[  (FAILED|SKIPPED) +\] ", line):
            if "FAILED" in line:
                yield begun[0], lines[begun[1]:number]
            begun = None
    if begun:
        yield begun[0], lines[begun[1]:]


def telling(lines):
    """The lines that say what went wrong: the assertions, what a sanitizer says, the command that
    repeats a seed; if there is nothing of these, the end."""
    kept = set()
    for number, line in enumerate(lines):
        if line.endswith(": Failure") or "Sanitizer:" in line or ": check failed: " in line:
            kept.update(range(number, min(number + LINES_OF_ASSERTION, len(lines))))
        if "--gtest_filter=" in line or " replay " in line:
            kept.add(number)
    if not kept:
        return lines[-LINES_OF_END:]
    return [lines[number] for number in sorted(kept)]


def main(paths):
    told = set()
    for path in paths:
        with open(path, errors="replace") as file:
            log = file.read()
        for name, command, output in sections(log):
            failed = list(cases(output)) or [(None, output)]
            for case, lines in failed:
                if (name, case) in told:
                    continue
                told.add((name, case))
                print(f"--- {name}" + (f", {case}" if case else ""))
                for line in telling(lines):
                    print("    " + line[:WIDTH])
                print("    again: " + command + (f" --gtest_filter={case}" if case else ""))


main(sys.argv[1:])
