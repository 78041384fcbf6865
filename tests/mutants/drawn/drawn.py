#!/usr/bin/python3
"""Draws small mistakes among all that the core can hold, hunts each, and says which hold out.

drawn.py [--count 500] [--seed N] [--seconds 60] [--units N] [--tests] [--below 95] [--anew]

A mistake is drawn again until a run reaches it with a difference: where none does, it may be none
at all, or no program says what would show it; those are counted by folder. One that is reached is
hunted as a user would, in all scenarios, for so many seconds of one core. With --tests what holds
out is given to the tests of core as well. What is known is kept: the same command goes on where it
was ended. reasons.json names what changes nothing that is promised.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from unit_tests import UnitTests  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SEEDS_TO_REACH = 60
BUSY_FACTOR = 10

Answer = collections.namedtuple("Answer", "status out err seconds")


class Tool:
    """The program with all mistakes in it, of which one is made, or none (0)."""

    def __init__(self, path):
        self.path = path

    def run(self, words, mistake, seen=None, seconds=600):
        environment = {**os.environ, "REHEARSAL_SCHEMA": str(mistake)}
        environment.pop("REHEARSAL_SCHEMA_SEEN", None)
        if seen is not None:
            environment["REHEARSAL_SCHEMA_SEEN"] = seen

        def alone():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 5, int(seconds) + 30))

        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen([str(self.path), *words], stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, env=environment, preexec_fn=alone)

            def end():
                os.killpg(process.pid, signal.SIGKILL)

            timer = threading.Timer(seconds * BUSY_FACTOR, end)
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            for file in (out, err):
                file.seek(0)
            return Answer(process.returncode, out.read(), err.read(),
                          usage.ru_utime + usage.ru_stime)

    def hunt(self, mistake, words, seen=None, seconds=600):
        """Of all scenarios, as a user would."""
        return self.run(["hunt", "--json", "--shrink-for", "0s", *words], mistake, seen, seconds)


def reached(tool, size, jobs):
    """A byte for each number: whether some run would have been different."""
    with tempfile.NamedTemporaryFile() as seen:
        seen.truncate(size)
        answer = tool.hunt(0, ["--seeds", str(SEEDS_TO_REACH), "--jobs", str(jobs)], seen.name)
        if answer.status != 0:
            raise RuntimeError(f"without a mistake: {(answer.out + answer.err)[-1500:]}")
        return pathlib.Path(seen.name).read_bytes()


def hunted(tool, mistake, seconds):
    answer = tool.hunt(mistake, ["--for", f"{seconds}s-cpu", "--jobs", "1"], seconds=seconds + 60)
    if answer.status != 0:
        return found_by(answer)
    return {"found": False, "seconds": answer.seconds, "runs": json.loads(answer.out)["runs"]}


def found_by(answer):
    told = {"found": True, "seconds": answer.seconds}
    try:
        result = json.loads(answer.out)
        failure = result["failure"]
        return {**told, "runs": result["runs"], "scenario": result["scenario"],
                "oracle": failure["oracle"], "object": failure["object"][:200],
                "replay": failure["replay"][:400]}
    except (ValueError, KeyError, TypeError):
        return {**told, "oracle": "process", "object": f"the tool ended with {answer.status}",
                "replay": answer.err.strip()[-200:]}


def key_of(mistake):
    """What it is called as long as its line is not rewritten; reasons.json has it in fields."""
    return mistake["file"], mistake["kind"], mistake["text"][:60]


class Record:
    """What is known of each number, a line of JSON each, that outlives the process."""

    def __init__(self, path, of):
        self.path, self.of, self.known, self.lock = path, of, {}, threading.Lock()
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # The end of a call that was ended.
                if entry["of"] == of:
                    self.known[entry["number"]] = entry["result"]

    def add(self, number, result):
        with self.lock:
            self.known[number] = result
            with self.path.open("a") as file:
                file.write(json.dumps({"of": self.of, "number": number, "result": result}) + "\n")


def folder_of(mistake):
    return os.path.dirname(mistake["file"])


def draw(mistakes, is_reached, reasons, options):
    """The mistakes to hunt, those that no run reaches on the way to them, and those excused."""
    order = sorted(mistakes, key=lambda one: one["number"])
    random.Random(options.seed).shuffle(order)
    hunts, unreached, excused = [], [], []
    for one in order:
        if len(hunts) == options.count:
            break
        if key_of(one) in reasons:
            excused.append(one)
        elif one["number"] in is_reached:
            hunts.append(one)
        else:
            unreached.append(one)
    return hunts, unreached, excused


def print_table(hunts, unreached, known):
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for one in hunts:
        row = rows[folder_of(one)]
        result = known[one["number"]]
        row[0] += 1
        row[1] += result["found"]
        row[2] += bool(result.get("test"))
    for one in unreached:
        rows[folder_of(one)][3] += 1
    rows = dict(sorted(rows.items()))
    rows["all"] = [sum(row[i] for row in rows.values()) for i in range(4)]
    print("| folder | drawn | hunted down | by tests only | % | no run reaches |\n"
          "|---|---|---|---|---|---|")
    for folder, (drawn, hunted_down, tested, none) in rows.items():
        share = f"{100 * (hunted_down + tested) / drawn:.0f}" if drawn else "–"
        print(f"| `{folder}` | {drawn} | {hunted_down} | {tested} | {share} | {none} |")


def is_found(result):
    return result["found"] or bool(result.get("test"))


def print_survivors(hunts, known):
    survivors = [one for one in hunts if not is_found(known[one["number"]])]
    if survivors:
        print("\nNot found, by file (REHEARSAL_SCHEMA=NUMBER makes it):")
    for one in sorted(survivors, key=lambda one: (one["file"], one["line"])):
        print(f"  {one['file']}:{one['line']}: {one['kind']}: {one['text'][:100]}"
              f"  ({one['number']})")


def parse_options():
    parser = argparse.ArgumentParser(prog="./dev mutants --drawn", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="mistakes to hunt [500]")
    parser.add_argument("--seed", default="1", help="of the draw: any word, as a commit's id [1]")
    parser.add_argument("--seconds", type=int, default=60,
                        help="of one core for a mistake at most [60]")
    parser.add_argument("--units", type=int, default=0,
                        help="make those of so many drawn units of the build only [all]")
    parser.add_argument("--tests", action="store_true",
                        help="give what holds out to the tests of core")
    parser.add_argument("--files", default="", help="only mistakes of files that begin so")
    parser.add_argument("--below", type=float, default=0,
                        help="fail if fewer of 100 are found [0]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="hunts at once [all cores]")
    parser.add_argument("--anew", action="store_true", help="forget what earlier calls have found")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/dev"),
                        help=argparse.SUPPRESS)
    parser.add_argument("--out", type=pathlib.Path, help="the table as JSON",
                        default=pathlib.Path("build/mutants/drawn.json"))
    options = parser.parse_args()
    if min(options.count, options.seconds, options.jobs) < 1 or options.units < 0:
        parser.error("--count, --seconds, --jobs and --units: type a whole number from 1")
    return options


def build(options):
    words = ["/usr/bin/python3", str(HERE / "build.py"), "--build", str(options.build), "--jobs",
             str(options.jobs)]
    if options.units:
        words += ["--units", str(options.units), "--seed", options.seed]
    if subprocess.run(words, check=False).returncode != 0:
        raise RuntimeError("the mistakes were not built; see above")
    folder = options.build / "schemata"
    mistakes = json.loads((folder / "mistakes.json").read_text())
    return Tool(folder / "rehearsal"), mistakes


def reach_of(tool, mistakes, options):
    """The numbers that some run reaches. They are kept beside the tool."""
    identity = hashlib.sha256(tool.path.read_bytes()).hexdigest()[:16]
    kept = options.build / "schemata" / "reached.json"
    if kept.exists():
        known = json.loads(kept.read_text())
        if known["tool"] == identity:
            return identity, set(known["reached"])
    size = max(one["number"] for one in mistakes) + 4
    marks = reached(tool, size, options.jobs)
    numbers = [one["number"] for one in mistakes if marks[one["number"]]]
    kept.write_text(json.dumps({"tool": identity, "reached": numbers}))
    return identity, set(numbers)


def hunt_all(tool, hunts, record, options):
    missing = [one for one in hunts if one["number"] not in record.known]
    started = time.monotonic()

    def one(mistake):
        number = mistake["number"]
        record.add(number, hunted(tool, number, options.seconds))
        done = len(hunts) - len([one for one in missing if one["number"] not in record.known])
        if sys.stderr.isatty():
            print(f"{done} of {len(hunts)}, {time.monotonic() - started:.0f} s ", end="\r",
                  file=sys.stderr)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(one, mistake) for mistake in missing]
        try:
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def try_tests(hunts, record, size, options):
    """Which test finds what the hunts have not found, where a test reaches it."""
    def is_open(one):
        result = record.known[one["number"]]
        return not result["found"] and "test" not in result

    left = [one["number"] for one in hunts if is_open(one)]
    if not left:
        return
    tests = UnitTests(options.build, options.jobs)
    tests.make()
    reach = tests.reach(size)

    def one(number):
        record.add(number, {**record.known[number], "test": tests.found_by(number, reach)})

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, left))


def main():
    options = parse_options()
    tool, mistakes = build(options)
    identity, is_reached = reach_of(tool, mistakes, options)
    reasons = {key_of(entry) for entry in json.loads((HERE / "reasons.json").read_text())}
    mistakes = [one for one in mistakes if one["file"].startswith(options.files)]
    hunts, unreached, excused = draw(mistakes, is_reached, reasons, options)
    if not hunts:
        sys.exit("no run reaches any of these mistakes")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = options.out.with_suffix(".found.jsonl")
    if options.anew:
        done.unlink(missing_ok=True)
    record = Record(done, f"{identity}, {options.seconds} s")
    try:
        hunt_all(tool, hunts, record, options)
        if options.tests:
            try_tests(hunts, record, max(one["number"] for one in mistakes) + 4, options)
    except KeyboardInterrupt:
        sys.exit(f"ended; what was found is kept in {done}, and the same command goes on")
    print_table(hunts, unreached, record.known)
    print_survivors(hunts, record.known)
    if excused:
        print(f"\n{len(excused)} more change nothing that is promised (reasons.json)")
    rows = [{**one, **record.known[one["number"]]} for one in hunts]
    options.out.write_text(json.dumps({"seed": options.seed, "mistakes": rows}, indent=1))
    print(f"The table as JSON: {options.out}")
    share = 100 * sum(is_found(row) for row in rows) / len(rows)
    if share < options.below:
        sys.exit(f"{share:.0f} of 100 are found, fewer than {options.below:.0f}")


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"drawn: {error}")
