"""Draws what the training scenarios learn: one picture for each, from its notes.

And of the pipeline a step, who computed when, which the scenario itself draws.

Runs each scenario in the simulator, at its normal size, with seed 1, and writes the numbers that
its workers note, one curve for each note and worker, to scenarios/NAME/curve.svg. The same tool
gives the same bytes. See ./dev help.
"""

import argparse
import collections
import html
import math
import os
import re
import subprocess
import sys
import tempfile
import textwrap

Picture = collections.namedtuple("Picture", "scenario title step notes bound")
# `step`: what one more number stands for. `bound`: a line that means something, and its meaning.
PICTURES = [
    Picture("rnn", "perplexity", "epoch", ["training perplexity", "validation perplexity"], None),
    Picture("rl", "running reward", "episode", ["running reward"], (475, "solved")),
    Picture("batch_rl", "running reward", "episode", ["running reward"], (475, "solved")),
    Picture("parameter_server", "loss of a batch", "batch", ["loss"], None),
    Picture("batch_parameter_server", "loss of a trainer's batch", "round", ["loss"], None),
    Picture("pipeline", "loss", "step", ["loss"], None),
]
# The options of a step that its scenario draws to scale: a pass takes 100 ms.
STEPS = {
    "pipeline": ["size=tiny", "stages=4", "workers=4", "micro_batches=8", "pass_ms=100",
                 "schedule=zero_bubble", "svg=640"],
}

WIDTH, HEIGHT = 640, 280
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 56, 40
# Told apart also by those who see fewer colours, on white and on black.
COLOURS = ["#2f7ed8", "#d9822b", "#2a9d8f", "#b05cc6", "#c94a4a"]
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #444; }
.title { font-size: 14px; font-weight: 600; fill: #222; }
.grid { stroke: #8884; stroke-width: 1; }
.bound { stroke: #888; stroke-width: 1; stroke-dasharray: 4 4; }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
.dense { stroke-width: 1.25; }
@media (prefers-color-scheme: dark) { text { fill: #bbb; } .title { fill: #eee; } }
"""

NOTE = re.compile(r'^\d+ [\d.]+ (\S+)\.\d+ note .* "([^"]*)" "([^"]*)" [0-9a-f]+$')


def notes_of(tool, scenario, options):
    """What the workers of one run note: a list of numbers by (note, worker)."""
    with tempfile.NamedTemporaryFile("r", suffix=".trace") as trace:
        # Some compare with one process at their end, which takes long on a busy machine.
        words = [tool, "run", scenario, "--seed", "1", "--watchdog", "10m", "--trace", trace.name]
        for option in options:
            words += ["--set", option]
        run = subprocess.run(words, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"curves: {scenario} failed:\n{run.stdout}{run.stderr}".rstrip())
        series = collections.defaultdict(list)
        for line in trace:
            note = NOTE.match(line.rstrip("\n"))
            if note:
                worker, name, value = note.groups()
                series[name, worker].append(float(value))
        return series


def step_of(tool, scenario):
    """The picture that a scenario draws of its first step."""
    words = [tool, "run", scenario, "--seed", "1", "--faults", "none", "--watchdog", "10m"]
    for option in STEPS[scenario]:
        words += ["--set", option]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"<svg.*?</svg>", run.stdout, re.DOTALL)
    if run.returncode != 0 or not found:
        sys.exit(f"curves: {scenario} draws no step:\n{run.stdout}{run.stderr}".rstrip())
    return found.group() + "\n"


def ticks_of(low, high, most):
    """Round numbers, at most so many, that cover low to high."""
    span = (high - low) or 1
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * factor for factor in (1, 2, 5, 10, 20)
                if math.ceil(high / (power * factor)) - math.floor(low / (power * factor)) <= most)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(step * i, 10) for i in range(first, max(last, first + 1) + 1)]


def narrow(part):
    """An element on lines of at most 100 columns: spaces and ends of lines are one to XML."""
    return textwrap.fill(part, 100, break_long_words=False, break_on_hyphens=False)


class Drawing:
    """A picture under way."""

    def __init__(self, picture, series):
        self.picture = picture
        self.series = series
        self.count = max(len(values) for _, values in series)
        numbers = [value for _, values in series for value in values]
        if picture.bound:
            numbers.append(picture.bound[0])
        self.ticks = ticks_of(min(0, *numbers), max(numbers), 5)
        self.parts = []

    def x(self, position):
        share = (position - 1) / max(self.count - 1, 1)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        low, high = self.ticks[0], self.ticks[-1]
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def text(self, x, y, text, anchor="start", extra=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>'
                          f'{html.escape(text)}</text>')

    def line(self, kind, y):
        self.parts.append(f'<line class="{kind}" x1="{LEFT}" y1="{y:.1f}" '
                          f'x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')

    def draw_axes(self):
        for tick in self.ticks:
            self.line("grid", self.y(tick))
            self.text(LEFT - 8, self.y(tick) + 4, f"{tick:g}", "end")
        for tick in ticks_of(0, self.count, 6):
            if 1 <= tick <= self.count and tick == int(tick):
                self.text(self.x(tick), HEIGHT - BOTTOM + 18, f"{tick:g}", "middle")
        self.text(WIDTH - RIGHT, HEIGHT - 6, self.picture.step, "end")
        if self.picture.bound:
            value, meaning = self.picture.bound
            self.line("bound", self.y(value))
            self.text(LEFT + 4, self.y(value) + 14, f"{meaning}: {value}")

    def draw_curves(self):
        legend = LEFT
        for number, (label, values) in enumerate(self.series):
            colour = COLOURS[number % len(COLOURS)]
            points = " ".join(f"{self.x(i):.1f},{self.y(value):.1f}"
                              for i, value in enumerate(values, 1))
            kind = "curve dense" if len(values) > 100 else "curve"
            self.parts.append(f'<polyline class="{kind}" stroke="{colour}" points="{points}"/>')
            if len(self.series) > 1:
                self.parts.append(f'<rect x="{legend}" y="34" width="12" height="3" rx="1" '
                                  f'fill="{colour}"/>')
                self.text(legend + 18, 40, label)
                legend += 36 + 7 * len(label)

    def svg(self):
        title = f"{self.picture.scenario}: {self.picture.title}"
        self.text(LEFT, 20, title, extra=' class="title"')
        self.draw_axes()
        self.draw_curves()
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
                f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{html.escape(title)}">')
        body = "\n".join(narrow(part) for part in self.parts)
        return f"{narrow(head)}\n<style>{STYLE}</style>\n{body}\n</svg>\n"


def drawn(picture, notes):
    """The picture of one run's notes. A label names what tells its curve from the others."""
    series = []
    for name in picture.notes:
        workers = sorted((worker for note, worker in notes if note == name),
                         key=lambda worker: (len(worker), worker))
        for worker in workers:
            series.append((worker if len(workers) > 1 else name, notes[name, worker]))
    if not series:
        sys.exit(f"curves: {picture.scenario} has noted none of {picture.notes}")
    return Drawing(picture, series).svg()


def parse_options():
    parser = argparse.ArgumentParser(prog="./dev curves", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios [all]")
    parser.add_argument("--tool", default="build/release/rehearsal", help="[%(default)s]")
    parser.add_argument("--into", default="scenarios", metavar="FOLDER", help="[%(default)s]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="options",
                        help="of the scenarios; may be repeated")
    options = parser.parse_args()
    unknown = set(options.names) - {picture.scenario for picture in PICTURES}
    if unknown:
        parser.error(f"no training scenario: {', '.join(sorted(unknown))}")
    return options


def write(folder, scenario, name, text):
    path = os.path.join(folder, scenario, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print(path)


def main():
    options = parse_options()
    for picture in PICTURES:
        if options.names and picture.scenario not in options.names:
            continue
        notes = notes_of(options.tool, picture.scenario, options.options)
        write(options.into, picture.scenario, "curve.svg", drawn(picture, notes))
        if picture.scenario in STEPS:
            step = step_of(options.tool, picture.scenario)
            write(options.into, picture.scenario, "step.svg", step)


if __name__ == "__main__":
    main()
