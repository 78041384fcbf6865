"""Hunts every mutant as a user would, and says how soon each is found; see ./dev help.

A campaign is one hunt of the scenario storm with the default portfolio, on one core, from a first
seed of its own. A mutant holds out if a campaign ends without finding it. The first failure of each
is shrunk, and the line that repeats it is run.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shlex
import statistics
import subprocess
import sys

STRATEGIES = ["random-walk", "pct", "pos"]
SEED_STEP = 1_000_000
DECISIONS_MAX = 12
SOON_SECONDS = 10

Campaign = collections.namedtuple("Campaign", "mutant strategy number")


class Tool:
    def __init__(self, path, seconds):
        self.path = path
        self.seconds = seconds

    def run(self, words):
        return subprocess.run([self.path] + words, capture_output=True, text=True, check=False)

    def table(self):
        answer = self.run(["list", "--mutants", "--json"])
        if answer.returncode != 0:
            sys.exit(answer.stderr.strip())
        return json.loads(answer.stdout)["mutants"]

    def hunt(self, campaign):
        """What one campaign found; None if nothing."""
        first = 1 + campaign.number * SEED_STEP
        is_shrunk = campaign.number == 0 and campaign.strategy is None
        words = ["hunt", "storm", "--jobs", "1", "--json", "--first-seed", str(first)]
        words += ["--for", f"{self.seconds}s", "--shrink-for", "30s" if is_shrunk else "0s"]
        words += ["--mutant", campaign.mutant]
        if campaign.strategy:
            words += ["--strategy", campaign.strategy]
        answer = self.run(words)
        if answer.returncode not in (0, 1):
            sys.exit(f"{shlex.join(words)}: {answer.stderr.strip()}")
        result = json.loads(answer.stdout)
        if answer.returncode == 0:
            return None
        found = {
            "seeds": result["seed"] - first + 1,
            "seconds": result["wall_seconds"],
            "oracle": result["failure"]["oracle"],
            "object": result["failure"]["object"],
        }
        if is_shrunk:
            found.update(self.repeat(result["failure"]["replay"]))
        return found

    def repeat(self, line):
        """Runs the line that a hunt printed."""
        words = shlex.split(line)
        again = self.run(words[1:])
        # A run whose process ends is reported on standard error.
        lines = (again.stdout or again.stderr).splitlines()
        return {
            "replay": line,
            "decisions": words.count("--decide"),
            "repeats": again.returncode == 1 and bool(lines) and lines[-1] == line,
        }


def median(numbers):
    return statistics.median(numbers) if numbers else None


def summary(row, campaigns):
    """One mutant's row of the table, from its campaigns by strategy."""
    own = campaigns[None]
    found = [one for one in own if one]
    oracles = collections.Counter(one["oracle"] for one in found)
    first = next((one for one in own if one and "replay" in one), {})
    problems = []
    if len(found) < len(own):
        problems.append(f"not found in {len(own) - len(found)} of {len(own)} campaigns")
    if found and not first.get("repeats"):
        problems.append("its printed line does not repeat it")
    if first.get("decisions", 0) > DECISIONS_MAX:
        problems.append(f"more than {DECISIONS_MAX} decisions")
    return {
        "name": row["name"],
        "kind": row["kind"],
        "found": len(found),
        "campaigns": len(own),
        "oracle": oracles.most_common(1)[0][0] if oracles else "",
        "seeds": median([one["seeds"] for one in found]),
        "seconds": median([one["seconds"] for one in found]),
        "decisions": first.get("decisions"),
        "replay": first.get("replay", ""),
        "strategies": {
            # A campaign that found nothing counts as more seeds than any.
            name: median([one["seeds"] if one else float("inf") for one in campaigns[name]])
            for name in campaigns
            if name
        },
        "problems": problems,
    }


def number(value):
    if value is None:
        return "–"
    if value == float("inf"):
        return "∞"
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def print_table(heads, rows):
    widths = [max(len(line[i]) for line in [heads] + rows) for i in range(len(heads))]
    for line in [heads, ["-" * width for width in widths]] + rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |")
    print()


def print_report(rows):
    print_table(
        ["mutant", "kind", "found", "oracle", "seeds", "seconds", "decisions"],
        [
            [row["name"], row["kind"], f"{row['found']} of {row['campaigns']}", row["oracle"],
             number(row["seeds"]), "–" if row["seconds"] is None else f"{row['seconds']:.2f}",
             number(row["decisions"])]
            for row in rows
        ])
    ordering = [row for row in rows if row["strategies"]]
    if ordering:
        print_table(["ordering mutant"] + STRATEGIES,
                    [[row["name"]] + [number(row["strategies"][name]) for name in STRATEGIES]
                     for row in ordering])
        not_better = [row["name"] for row in ordering
                      if min(row["strategies"]["pct"], row["strategies"]["pos"]) >
                      row["strategies"]["random-walk"]]
        if not_better:
            print("random-walk needs fewer seeds than pct and pos: " + ", ".join(not_better))
    soon = sum(row["seconds"] is not None and row["seconds"] <= SOON_SECONDS for row in rows)
    print(f"{soon} of {len(rows)} are found within {SOON_SECONDS} s in the median")
    for row in rows:
        for problem in row["problems"]:
            print(f"{row['name']}: {problem}")


def main():
    parser = argparse.ArgumentParser(prog="./dev mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants [all]")
    parser.add_argument("--campaigns", type=int, default=10, help="hunts of each [10]")
    parser.add_argument("--seconds", type=int, default=60, help="of a hunt at most [60]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="hunts at once [all cores]")
    parser.add_argument("--no-strategies", action="store_true",
                        help="leave out the comparison of strategies")
    parser.add_argument("--tool", default="build/mutants/rehearsal", help=argparse.SUPPRESS)
    parser.add_argument("--out", default="build/mutants/table.json", help="the table as JSON")
    options = parser.parse_args()
    if options.campaigns < 1 or options.seconds < 1 or options.jobs < 1:
        parser.error("--campaigns, --seconds and --jobs: type a whole number from 1")
    tool = Tool(options.tool, options.seconds)
    table = tool.table()
    known = {row["name"] for row in table}
    for name in options.names:
        if name not in known:
            parser.error(f"there is no mutant '{name}'; {options.tool} list --mutants names them")
    table = [row for row in table if not options.names or row["name"] in options.names]

    tasks = []
    for row in table:
        compare = row["kind"] == "ordering" and not options.no_strategies
        for strategy in [None] + (STRATEGIES if compare else []):
            tasks += [Campaign(row["name"], strategy, i) for i in range(options.campaigns)]
    results = collections.defaultdict(lambda: collections.defaultdict(list))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done, (task, found) in enumerate(zip(tasks, pool.map(tool.hunt, tasks)), 1):
            results[task.mutant][task.strategy].append(found)
            if sys.stderr.isatty():
                print(f"\r\033[K{done} of {len(tasks)} campaigns, {task.mutant}", end="",
                      file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)

    rows = [summary(row, results[row["name"]]) for row in table]
    print_report(rows)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"campaigns": options.campaigns, "mutants": rows}, file, indent=2)
    print(f"The table as JSON: {options.out}")
    return 1 if any(row["problems"] for row in rows) else 0


sys.exit(main())
