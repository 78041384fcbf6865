#!/usr/bin/python3
"""Builds the tool with every small mistake in it, beside the one that a preset has built.

build.py [--build build/dev] [--jobs N] [--units N --seed WORD]

The library's core is compiled again from the copies that schemata.py makes; all else is the
preset's own. The tool goes to BUILD/schemata/rehearsal, and to mistakes.json the list of what
REHEARSAL_SCHEMA=NUMBER breaks in it. Mistakes that do not compile are left out. With --units only
those of so many units, drawn by a word.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NUMBERS_IN_A_UNIT = 20_000
ROUNDS_MAX = 6
# What is not the protocol: how stacks are kept, and what LibTorch's operators are.
NOT_CORE = ("rehearsal_fibers", "/core/fibers/", "rehearsal_proto")


class Unit:
    def __init__(self, words, index, out):
        self.words = words
        self.source = words[-1]
        self.name = pathlib.Path(self.source).stem
        self.first = 1 + index * NUMBERS_IN_A_UNIT
        self.folder = out / self.name
        self.object = self.folder / "unit.o"
        self.left_out = self.folder / "left_out.txt"

    def archive(self):
        """The library that has it in the preset, as CMake names the folder of its objects."""
        return re.sub(r".*/CMakeFiles/(\w+)\.dir/.*", r"lib\1.a", self.words[-3])

    def flags(self):
        """Those that say what the source means."""
        kept, words = [], iter(self.words[:-4])
        for word in words:
            if word in ("-isystem", "-include-pch"):
                kept += [word, next(words)]
            elif word in ("-MT", "-MF", "-mllvm"):
                next(words)
            elif word.startswith(("-D", "-I", "-O", "-std", "-f")):
                kept.append(word)
        return kept

    def stamp(self):
        """What the result depends on; headers by the preset's own object, which follows them."""
        digest = hashlib.sha256()
        for path in (HERE / "schemata.py", HERE / "schemata.h", HERE / "build.py"):
            digest.update(path.read_bytes())
        digest.update(shlex.join(self.words).encode())
        digest.update(pathlib.Path(self.words[-3]).read_bytes())
        return digest.hexdigest()

    def generate(self, root):
        command = ["/usr/bin/python3", str(HERE / "schemata.py"), "--root", str(root), "--out",
                   str(self.folder), "--without", str(self.left_out), "--first", str(self.first),
                   self.source, "--", *self.flags()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {done.stderr[-2000:]}")

    def compile(self, root):
        """The lines of the copies that do not compile."""
        compiler = self.words[:self.words.index("-o")]
        command = [word for word in compiler if word not in ("-Werror", "-MD")]
        for flag in ("-MT", "-MF"):
            if flag in command:
                at = command.index(flag)
                del command[at:at + 2]
        # Joined sources name those that they join from the root: the copies are found before.
        copy = self.folder / os.path.relpath(self.source, root)
        command += ["-include", str(HERE / "schemata.h"), "-w", "-Wno-c++11-narrowing",
                    "-ferror-limit=0", "-iquote", str(self.folder), "-o", str(self.object), "-c",
                    str(copy if copy.exists() else self.source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return set()
        wrong = set(re.findall(rf"^{re.escape(str(self.folder))}/(\S+?:\d+):\d+: error",
                               done.stderr, re.M))
        if not wrong:
            raise RuntimeError(f"{self.name}: {done.stderr[:3000]}")
        return wrong

    def build(self, root):
        stamp = self.stamp()
        kept = self.folder / "stamp"
        if kept.exists() and kept.read_text() == stamp:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self.left_out.write_text("")
        for _ in range(ROUNDS_MAX):
            self.generate(root)
            wrong = self.compile(root)
            if not wrong:
                kept.write_text(stamp)
                return
            with self.left_out.open("a") as file:
                file.writelines(f"{line}\n" for line in sorted(wrong))
        raise RuntimeError(f"{self.name}: {sorted(wrong)[:5]} do not compile")


def commands_of(build, target):
    listed = subprocess.run(["ninja", "-C", str(build), "-t", "commands", target],
                            capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def link(build, target, objects):
    """Links a target of the preset once more, with these objects in the place of its own, to
    BUILD/schemata/TARGET. A test may know a part of core only: it takes what its archives have."""
    words = words_of(commands_of(build, target)[-1])[:-2]
    archives = {pathlib.Path(word).name for word in words if word.endswith(".a")}
    first = next(i for i, word in enumerate(words) if word.endswith(".a"))
    words[first:first] = [one for one, archive in objects.items() if archive in archives]
    words[words.index("-o") + 1] = f"schemata/{target}"
    subprocess.run(words, check=True, cwd=build)


def words_of(line):
    words = shlex.split(line)
    while words and (words[0] in ("env", ":", "&&") or "=" in words[0] or
                     words[0].endswith("ccache")):
        words.pop(0)
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/dev"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--units", type=int, default=0)
    parser.add_argument("--seed", default="")
    options = parser.parse_args()
    root = pathlib.Path.cwd()
    build = options.build.resolve()
    out = build / "schemata"
    units = []
    for line in commands_of(build, "rehearsal"):
        if not re.search(rf" -c ({re.escape(str(build))}/core/units|{re.escape(str(root))}/core)/"
                         r"\S+\.cc$", line) or any(name in line for name in NOT_CORE):
            continue
        units.append(Unit(words_of(line), len(units), out))
    if options.units:
        units = random.Random(options.seed).sample(units, min(options.units, len(units)))
    os.chdir(build)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda unit: unit.build(root), units))
    mistakes = []
    for unit in units:
        mistakes += json.loads((unit.folder / f"{unit.name}.json").read_text())
    (out / "mistakes.json").write_text(json.dumps(mistakes))
    objects = {str(unit.object): unit.archive() for unit in units}
    (out / "objects.json").write_text(json.dumps(objects))
    link(build, "rehearsal", objects)
    print(f"{len(mistakes)} mistakes in {len(units)} units: {out / 'rehearsal'}")


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"build.py: {error}")
