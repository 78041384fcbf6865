"""Hunts every mutant as a user would, and says how soon each is found; see ./dev help.

A campaign is one hunt, of the scenario storm unless flags.json names another one, with the
default portfolio, on one core, from a first seed of its own. Seconds, also the limit of a hunt,
are the processor's, so that other work on the machine does not count. A mutant holds out if a
campaign ends without finding it. The first failure of each is shrunk, and both the line and the
file that repeat it are run. What is done is kept: a second call with the same tool goes on where
the first one was ended.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time

STRATEGIES = ["random-walk", "pct", "pos"]
SEED_STEP = 1_000_000
DECISIONS_MAX = 12
SOON_SECONDS = 10
SOON_SHARE = 0.9
SHRINK_SECONDS = 60
# On a busy machine a process gets so much less of the time that passes.
BUSY_FACTOR = 10
# What no simulated network does is left to tests; sim/mutants.md says which.
NOT_HUNTED = {"destination_unchecked"}
# The scenario, if it is not storm, and the words that a hunt of a mutant needs beside the seeds:
# where it is rare, and where many small delays add up to seconds, so that a failure cannot be told
# by few decisions.
with open(os.path.join(os.path.dirname(__file__), "flags.json"), encoding="utf-8") as words:
    FLAGS = json.load(words)

Campaign = collections.namedtuple("Campaign", "mutant strategy number")
Answer = collections.namedtuple("Answer", "status out err seconds")


class Tool:
    def __init__(self, path, seconds):
        self.path = path
        self.seconds = seconds

    def run(self, words):
        """Runs it. Each of its processes is ended after so many seconds of the processor, and all
        of it, with the status None, if there is no end."""
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds + 30))

        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen([self.path] + words, stdout=out, stderr=err,
                                       preexec_fn=limit)
            timer = threading.Timer(self.seconds * BUSY_FACTOR, process.kill)
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            return Answer(None if os.WIFSIGNALED(status) else process.returncode, out.read(),
                          err.read(), usage.ru_utime + usage.ru_stime)

    def table(self):
        answer = self.run(["list", "--mutants", "--json"])
        if answer.status != 0:
            sys.exit(answer.err.strip())
        return json.loads(answer.out)["mutants"]

    def identity(self):
        """What results belong to: the tool's bytes."""
        with open(self.path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:16]

    def hunt(self, campaign):
        """What one campaign found; None if nothing."""
        first = 1 + campaign.number * SEED_STEP
        flags = FLAGS.get(campaign.mutant, [])
        named = bool(flags) and not flags[0].startswith("-")
        words = ["hunt", flags[0] if named else "storm", *flags[named:]]
        words += ["--jobs", "1", "--json", "--first-seed", str(first)]
        words += ["--for", "10h", "--shrink-for", "0s", "--mutant", campaign.mutant]
        if campaign.strategy:
            words += ["--strategy", campaign.strategy]
        answer = self.run(words)
        if answer.status not in (None, 1):
            raise RuntimeError(f"{shlex.join(words)}: {answer.err.strip()}")
        result = json.loads(answer.out) if answer.status else None
        # The process that simulates has used up its time.
        if result is None or "CPU time limit" in result["failure"]["object"]:
            return None
        found = {
            "seeds": result["seed"] - first + 1,
            "seconds": answer.seconds,
            "oracle": result["failure"]["oracle"],
            "object": result["failure"]["object"],
        }
        if campaign.number == 0 and campaign.strategy is None:
            found.update(self.shrink(shlex.split(result["failure"]["replay"])[2:]))
        return found

    def shrink(self, run):
        """Makes the run with these arguments small; runs the line and the file that are left."""
        with tempfile.NamedTemporaryFile(suffix=".run") as file:
            answer = self.run(["shrink", *run, "--json", "--for",
                               f"{SHRINK_SECONDS * BUSY_FACTOR // 2}s", "--out", file.name])
            if answer.status != 1:
                return {"decisions": None, "repeats": False, "replay": ""}
            result = json.loads(answer.out)
            line = result["failure"]["replay"]
            return {
                "replay": line,
                "decisions": len(result["decisions"]),
                "shrink_seconds": answer.seconds,
                "repeats": self.fails_with(shlex.split(line)[1:], line)
                           and self.fails_with(["replay", file.name], line),
            }

    def fails_with(self, words, line):
        """Whether this ends with the line of a failure."""
        answer = self.run(words)
        # A run whose process ends is reported on standard error.
        lines = (answer.out or answer.err).splitlines()
        return answer.status == 1 and bool(lines) and lines[-1] == line


class Record:
    """Results, a line of JSON each, that outlive the process that found them."""

    def __init__(self, path, key):
        self.path = path
        self.key = key
        self.known = {}
        self.lock = threading.Lock()
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # The end of a call that was ended.
                if entry.get("key") == key:
                    self.known[Campaign(*entry["campaign"])] = entry["found"]

    def add(self, campaign, found):
        with self.lock:
            self.known[campaign] = found
            with open(self.path, "a", encoding="utf-8") as file:
                json.dump({"key": self.key, "campaign": campaign, "found": found}, file)
                file.write("\n")


def median(numbers):
    return statistics.median(numbers) if numbers else None


def summary(row, campaigns):
    """One mutant's row of the table, from its campaigns by strategy."""
    own = campaigns[None]
    found = [one for one in own if one]
    oracles = collections.Counter(one["oracle"] for one in found)
    first = next((one for one in own if one and "replay" in one), {})
    decisions = first.get("decisions")
    problems = []
    if len(found) < len(own):
        problems.append(f"not found in {len(own) - len(found)} of {len(own)} campaigns")
    if found and not first.get("repeats"):
        problems.append("its printed line or file does not repeat it")
    if first.get("shrink_seconds", 0) > SHRINK_SECONDS:
        problems.append(f"shrunk in more than {SHRINK_SECONDS} s")
    if decisions is not None and decisions > DECISIONS_MAX:
        problems.append(f"more than {DECISIONS_MAX} decisions")
    return {
        "name": row["name"],
        "kind": row["kind"],
        "found": len(found),
        "campaigns": len(own),
        "oracle": oracles.most_common(1)[0][0] if oracles else "",
        "seeds": median([one["seeds"] for one in found]),
        "seconds": median([one["seconds"] for one in found]),
        "seconds_max": max((one["seconds"] for one in found), default=None),
        "decisions": decisions,
        "shrink_seconds": first.get("shrink_seconds"),
        "replay": first.get("replay", ""),
        "strategies": {
            # A campaign that found nothing counts as more seeds than any.
            name: median([one["seeds"] if one else float("inf") for one in campaigns[name]])
            for name in campaigns
            if name
        },
        "problems": problems,
    }


def number(value, digits=None):
    if value is None:
        return "–"
    if value == float("inf"):
        return "∞"
    if digits is not None:
        return f"{value:.{digits}f}"
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


class Table:
    """A table whose rows are printed one by one."""

    def __init__(self, heads, widths):
        widths = widths + [0] * (len(heads) - len(widths))
        self.widths = [max(width, len(head)) for head, width in zip(heads, widths)]
        self.row(heads)
        self.row(["-" * width for width in self.widths])

    def row(self, cells):
        line = " | ".join(cell.ljust(width) for cell, width in zip(cells, self.widths))
        print(f"| {line} |", flush=True)


def print_row(table, row):
    table.row([f"`{row['name']}`", row["kind"], f"{row['found']} of {row['campaigns']}",
               row["oracle"], number(row["seeds"]), number(row["seconds"], 1),
               number(row["seconds_max"], 1), number(row["decisions"]),
               number(row["shrink_seconds"], 1)])


def print_strategies(rows):
    rows = [row for row in rows if row["strategies"]]
    if not rows:
        return
    print()
    table = Table(["ordering mutant"] + STRATEGIES, [max(len(row["name"]) for row in rows) + 2])
    counts = collections.Counter()
    worse = []
    for row in rows:
        seeds = row["strategies"]
        table.row([f"`{row['name']}`"] + [number(seeds[name]) for name in STRATEGIES])
        best = min(seeds["pct"], seeds["pos"])
        walk = seeds["random-walk"]
        counts["fewer" if best < walk else "as many" if best == walk else "more"] += 1
        if best > walk:
            worse.append(row["name"])
    print(f"\nPCT or POS need fewer seeds than a random walk for {counts['fewer']} of {len(rows)}, "
          f"as many for {counts['as many']}" + (", more for " + ", ".join(worse) if worse else ""))


def print_verdict(rows):
    in_time = sum(row["seconds"] is not None and row["seconds"] <= SOON_SECONDS for row in rows)
    print(f"\n{in_time} of {len(rows)} are found within {SOON_SECONDS} s in the median")
    problems = [f"{row['name']}: {problem}" for row in rows for problem in row["problems"]]
    if in_time < SOON_SHARE * len(rows):
        problems.append(f"fewer than {SOON_SHARE:.0%} are found within {SOON_SECONDS} s")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def parse_options():
    parser = argparse.ArgumentParser(prog="./dev mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants [all]")
    parser.add_argument("--campaigns", type=int, default=10, help="hunts of each [10]")
    parser.add_argument("--seconds", type=int, default=60, help="of a hunt at most [60]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="hunts at once [all cores]")
    parser.add_argument("--no-strategies", action="store_true",
                        help="leave out the comparison of strategies")
    parser.add_argument("--anew", action="store_true", help="forget what earlier calls have found")
    parser.add_argument("--tool", default="build/mutants/rehearsal", help=argparse.SUPPRESS)
    parser.add_argument("--out", default="build/mutants/table.json", help="the table as JSON")
    options = parser.parse_args()
    if options.campaigns < 1 or options.seconds < 1 or options.jobs < 1:
        parser.error("--campaigns, --seconds and --jobs: type a whole number from 1")
    return parser, options


def campaigns_of(row, options):
    compare = row["kind"] == "ordering" and not options.no_strategies
    return [Campaign(row["name"], strategy, i)
            for strategy in [None] + (STRATEGIES if compare else [])
            for i in range(options.campaigns)]


def measure(tool, record, table, options):
    """Prints each row as soon as it is known; returns them all."""
    printed = Table(["mutant", "kind", "found", "oracle", "seeds", "seconds", "most", "decisions",
                     "to shrink"],
                    [max(len(row["name"]) for row in table) + 2, 8, 8, 21, 7])
    started = time.monotonic()
    tasks = {row["name"]: campaigns_of(row, options) for row in table}
    missing = [task for row in table for task in tasks[row["name"]] if task not in record.known]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {task: pool.submit(tool.hunt, task) for task in missing}
        try:
            for place, row in enumerate(table):
                results = collections.defaultdict(list)
                for task in tasks[row["name"]]:
                    if task in futures:
                        record.add(task, futures[task].result())
                    results[task.strategy].append(record.known[task])
                rows.append(summary(row, results))
                print_row(printed, rows[-1])
                if sys.stderr.isatty():
                    print(f"{place + 1} of {len(table)} mutants, "
                          f"{time.monotonic() - started:.0f} s", end="\r", file=sys.stderr)
        except BaseException:
            for future in futures.values():
                future.cancel()
            raise
    return rows


def main():
    parser, options = parse_options()
    tool = Tool(options.tool, options.seconds)
    table = tool.table()
    known = {row["name"] for row in table}
    for name in options.names:
        if name not in known:
            parser.error(f"there is no mutant '{name}'; {options.tool} list --mutants names them")
    table = [row for row in table
             if row["name"] in (options.names or {row["name"]} - NOT_HUNTED)]
    done = os.path.splitext(options.out)[0] + ".campaigns.jsonl"
    if options.anew and os.path.exists(done):
        os.remove(done)
    record = Record(done, f"{tool.identity()}, {options.seconds} s")
    if record.known:
        print(f"{len(record.known)} campaigns are known from before: {done}", file=sys.stderr)
    try:
        rows = measure(tool, record, table, options)
    except KeyboardInterrupt:
        sys.exit(f"ended; what was found is kept in {done}, and the same command goes on")
    except RuntimeError as error:
        sys.exit(str(error))
    print_strategies(rows)
    status = print_verdict(rows)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"campaigns": options.campaigns, "mutants": rows}, file, indent=2)
    print(f"The table as JSON: {options.out}")
    return status


sys.exit(main())
