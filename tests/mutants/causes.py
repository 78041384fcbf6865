"""Judges the critical pairs: do they name what a mutant does first? See ./dev help.

Each mutant is hunted once and its failure is shrunk. The line that repeats the failure is run again
with and without the mutant, and the events of both are compared: where they part, the mutant has
acted for the first time. A pair names `the cause` if one of its two events is that one, follows
from it as its message, is about the same call, reference or context, or is what the same worker was
doing then; otherwise it is `innocent`. Where no pair is told, a decision that is told in its place
is `the place` if it is about one of the workers there, of a link about both; otherwise, and where
none is told, it is `no order`. `silent` is nothing at all.

A mutant may act harmlessly at first, and in the place that is named later: that counts as innocent.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import re
import shlex
import subprocess
import tempfile

# One that no simulated network needs; see campaigns.py.
NOT_HUNTED = {"destination_unchecked"}
HUNT_SECONDS = 60
SHRINK_SECONDS = 20
RUN_SECONDS = 120
# What a worker takes in from outside.
TAKEN_IN = {"frame", "frame_dropped", "execution_started", "execution_resumed", "timer", "peer_up",
            "peer_lost", "crash", "restart", "ack_frame"}

# How what is told in place of a pair begins.
NOTES = ("no order of events", "no two events", "another order")

Event = collections.namedtuple("Event", "time worker kind peer id message number")
Side = collections.namedtuple("Side", "worker ids message number peer text")


def event_of(line):
    """A line of --trace: number, time, worker.life, kind, words, digest."""
    _, time, worker, kind, *words = line.split(" ")
    named = dict(word.split("=", 1) for word in words if "=" in word)
    return Event(time, worker.split(".")[0], kind, *map(named.get, ("peer", "id", "message",
                                                                    "number")))


def without_digest(line):
    return line.rpartition(" ")[0]


def side_of(line, worker):
    """One of the two events, as the diagram tells it."""
    ids = re.findall(r"\b([0-9a-f]{8}#\d+)", line)
    # A long line is cut before it says from whom.
    frame = re.search(r"(?:takes|drops) (\w+)(?: (\d+))?(?:.* from (\w+))?", line)
    return Side(worker, ids, *(frame.groups() if frame else (None, None, None)), line)


def is_about(event, side):
    """Whether an event is the one that the diagram tells."""
    if event.worker != side.worker or event.kind not in TAKEN_IN:
        return False
    if side.message is None:
        return event.id is not None and event.id in side.ids
    return ((event.message, event.number) == (side.message, side.number) and
            side.peer in (None, event.peer))


def is_sent_as(event, side):
    """Whether the diagram tells the arrival of what this event sends, or sends again."""
    return (side.message is not None and event.kind.startswith("frame_") and
            event.message in (None, side.message) and side.peer in (None, event.worker) and
            (event.number, event.peer) == (side.number, side.worker))


def same_turn(events, side, at):
    """Whether the worker did what parts the runs when it had taken in this and nothing else."""
    acted = events[at]
    if acted.worker != side.worker:
        return False
    for i in range(at, -1, -1):
        event = events[i]
        if event.worker != acted.worker or event.kind not in TAKEN_IN:
            continue
        if is_about(event, side):
            return True
        if event.time != acted.time:
            return False
    return False


def names_it(sides, events, at, acted):
    """`acted`: the first event of each run that the other lacks."""
    for side in sides:
        for event in acted:
            if event.id is not None and (event.id in side.ids or event.id in side.text):
                return True
            if is_sent_as(event, side):
                return True
        if same_turn(events, side, at):
            return True
    return False


def names_place(note, acted):
    """Whether a decision, as its words tell it, is of the link or worker where the mutant acts."""
    link = re.match(r"(\w+)(?: in life \d+)?[→–](\w+)", note)
    for event in acted:
        there = {event.worker, event.peer}
        if link and set(link.groups()) <= there:
            return True
        if not link and any(name and re.search(rf"\b{name}\b", note) for name in there):
            return True
    return False


class Judge:
    def __init__(self, tool):
        self.tool = tool
        with open(os.path.join(os.path.dirname(__file__), "flags.json"), encoding="utf-8") as file:
            self.flags = json.load(file)

    def told(self, words):
        return subprocess.run([self.tool, *words], capture_output=True, text=True, check=False)

    def mutants(self):
        listed = json.loads(self.told(["list", "--mutants", "--json"]).stdout)["mutants"]
        return [one["name"] for one in listed if one["name"] not in NOT_HUNTED]

    def events_of(self, words):
        with tempfile.NamedTemporaryFile("r") as file:
            subprocess.run([self.tool, *words, "--trace", file.name], capture_output=True,
                           check=False, timeout=RUN_SECONDS)
            return [line for line in file.read().splitlines() if line]

    def judge(self, mutant):
        """(what its pair is worth, the lines that say why)."""
        words = self.flags.get(mutant, [])
        named = bool(words) and not words[0].startswith("-")
        hunt = self.told(["hunt", words[0] if named else "storm", *words[named:], "--jobs", "1",
                          "--for", f"{HUNT_SECONDS}s-cpu", "--shrink-for",
                          f"{SHRINK_SECONDS}s-cpu", "--mutant", mutant])
        lines = hunt.stdout.splitlines()
        if hunt.returncode != 1:
            return "not found", lines[-1:]
        replay = shlex.split(lines[-1])[1:]
        at = next((i for i, line in enumerate(lines) if line.startswith("critical at ")), None)
        noted = next((i for i, line in enumerate(lines) if line.startswith(NOTES)), None)
        if at is None and noted is None:
            return "silent", lines[-1:]
        place = replay.index("--mutant")
        wrong = self.events_of(replay)
        right = self.events_of(replay[:place] + replay[place + 2:])
        if not wrong or not right:
            return "no order", ["the run leaves no events", lines[-1]]
        parted = next((i for i, (one, other) in enumerate(zip(wrong, right))
                       if without_digest(one) != without_digest(other)),
                      min(len(wrong), len(right)) - 1)
        acted = [event_of(run[parted]) for run in (wrong, right) if parted < len(run)]
        if at is None:
            notes = [lines[noted], *itertools.takewhile(lambda line: line.startswith("  "),
                                                        lines[noted + 1:])]
            is_place = any(names_place(note.strip(), acted) for note in notes[1:])
            return ("the place" if is_place else "no order"), [*notes, wrong[parted], lines[-1]]
        worker = lines[at].split()[2].rstrip(":")
        sides = [side_of(line, worker) for line in lines[at + 1:at + 3]
                 if line.startswith(("  A:", "  B:"))]
        found = names_it(sides, [event_of(line) for line in wrong], parted, acted)
        return ("the cause" if found else "innocent"), [*lines[at:at + 4], wrong[parted],
                                                         lines[-1]]


def main():
    parser = argparse.ArgumentParser(prog="./dev mutants --causes", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mutants", nargs="*", help="[all]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="[all cores]")
    parser.add_argument("--tool", default="build/mutants/rehearsal", help=argparse.SUPPRESS)
    options = parser.parse_args()
    judge = Judge(options.tool)
    mutants = judge.mutants()
    if unknown := set(options.mutants) - set(mutants):
        parser.error(f"no mutants: {' '.join(sorted(unknown))} (rehearsal list --mutants)")
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        names = options.mutants or mutants
        for name, (verdict, why) in zip(names, pool.map(judge.judge, names)):
            counts[verdict] += 1
            print(f"{name}: {verdict}", flush=True)
            print("".join(f"    {line[:300]}\n" for line in why), end="", flush=True)
    print(", ".join(f"{verdict} {count}" for verdict, count in counts.most_common()))
    pairs = counts["the cause"] + counts["innocent"]
    if pairs > 0:
        print(f"of {pairs} pairs {100 * counts['the cause'] // pairs} % name the cause")


if __name__ == "__main__":
    main()
