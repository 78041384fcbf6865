"""Repeats tests beside other work, and says which did not hold and how near its limit each came;
see ./dev help.

Each test runs so many times, in random order but each once before any a second time, as many at a
time as there are cores, beside so many busy processes. When its time is up it ends, once the runs
under way have ended; by Ctrl-C at once. The output of each failure stays in build/soak/, with the
table.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

FOLDER = "build/soak"


class Test:
    def __init__(self, preset, described):
        properties = {one["name"]: one["value"] for one in described.get("properties", [])}
        self.name = described["name"]
        self.preset = preset
        self.command = described["command"]
        self.labels = properties.get("LABELS", [])
        self.limit = properties.get("TIMEOUT", 1500.0)
        self.folder = properties.get("WORKING_DIRECTORY", ".")
        self.environment = dict(one.split("=", 1) for one in properties.get("ENVIRONMENT", []))
        self.seconds = []
        self.failures = 0

    def run(self, log, stopped):
        """Runs it once with its output in the log; None if it held, else how it ended. Says nothing
        of one that was ended because all was stopped."""
        start = time.monotonic()
        with open(log, "wb") as out:
            process = subprocess.Popen(self.command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT,
                                       env={**os.environ, **self.environment},
                                       start_new_session=True)
            status = None
            while status is None and not stopped.is_set():
                try:
                    status = process.wait(min(1, self.limit))
                except subprocess.TimeoutExpired:
                    if time.monotonic() - start > self.limit:
                        break
            end_group(process)
            if stopped.is_set():
                return None
        self.seconds.append(time.monotonic() - start)
        if status == 0:
            return None
        self.failures += 1
        return f"had not ended after {self.limit:.0f} s" if status is None else f"status {status}"


def end_group(process):
    """Ends a process and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def tests_of(preset, group, pattern):
    told = subprocess.run(["ctest", "--preset", preset, "--show-only=json-v1", "-L", f"^{group}$",
                           "-R", pattern], check=True, stdout=subprocess.PIPE)
    return [Test(preset, one) for one in json.loads(told.stdout)["tests"] if "command" in one]


class Progress:
    """Tells on a terminal how far it is, else a line for each failure alone."""

    def __init__(self, total):
        self.total = total
        self.done = 0
        self.failed = 0
        self.start = time.monotonic()
        self.lock = threading.Lock()

    def tell(self, test, why, log):
        with self.lock:
            self.done += 1
            line = "\r\033[K" if sys.stderr.isatty() else ""
            if why is not None:
                self.failed += 1
                print(f"{line}{test.name}: {why}, see {log}", file=sys.stderr)
            if sys.stderr.isatty():
                minutes = (time.monotonic() - self.start) / 60
                print(f"{line}{self.done} of {self.total} runs, {self.failed} failed, "
                      f"{minutes:.0f} min: {test.name}", end="", file=sys.stderr, flush=True)


def rounds(tests, times, draws):
    for number in range(times):
        order = list(tests)
        draws.shuffle(order)
        for test in order:
            yield test, number


def run_all(tests, times, jobs, draws, seconds):
    runs = rounds(tests, times, draws)
    progress = Progress(len(tests) * times)
    lock = threading.Lock()
    stopped = threading.Event()

    def next_run():
        with lock:
            is_over = seconds is not None and time.monotonic() - progress.start > seconds
            return None if stopped.is_set() or is_over else next(runs, None)

    def work():
        while run := next_run():
            test, number = run
            log = os.path.join(FOLDER, f"{test.name}.{number}.log")
            why = test.run(log, stopped)
            if stopped.is_set():
                os.remove(log)
                return
            if why is None:
                os.remove(log)
            progress.tell(test, why, log)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        stopped.set()
        for thread in threads:
            thread.join()
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return not stopped.is_set()


def table(tests):
    rows = ["| test | runs | failures | slowest, s | of its limit |", "|---|---|---|---|---|"]
    seen = [test for test in tests if test.seconds]
    for test in sorted(seen, key=lambda one: (-one.failures, -max(one.seconds) / one.limit)):
        slowest = max(test.seconds)
        rows.append(f"| `{test.name}` | {len(test.seconds)} | {test.failures} | {slowest:.0f} | "
                    f"{100 * slowest / test.limit:.0f} % |")
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="./dev soak", add_help=False)
    parser.add_argument("--tests", action="append", nargs=3, default=[],
                        metavar=("PRESET", "GROUP", "NAMES"))
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--load", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--for", dest="seconds", type=float)
    options = parser.parse_args()
    tests = [one for group in options.tests for one in tests_of(*group)
             if not options.real or "real" in one.labels]
    if not tests:
        sys.exit("dev: none of these tests has real sockets or processes")
    os.makedirs(FOLDER, exist_ok=True)
    jobs = int(os.environ.get("JOBS", os.cpu_count()))
    print(f"{len(tests)} tests, each {options.times} times, {jobs} at once beside {options.load} "
          f"busy processes, in the order of seed {options.seed}")
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(options.load)]
    try:
        is_whole = run_all(tests, options.times, jobs, random.Random(options.seed),
                           options.seconds)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    with open(os.path.join(FOLDER, "table.md"), "w") as file:
        file.write(table(tests))
    print(table(tests), end="")
    sys.exit(1 if any(test.failures for test in tests) else 0 if is_whole else 130)


main()
