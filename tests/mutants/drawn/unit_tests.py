"""The tests of core, with every small mistake in what they test."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile

from build import link

SECONDS_MAX = 300


class UnitTests:
    """Executables beside the preset's own. `reach` is kept beside them."""

    def __init__(self, build, jobs):
        self.build, self.jobs = build.resolve(), jobs
        self.folder = self.build / "schemata"
        self.names = self.listed()

    def listed(self):
        told = subprocess.run(["ninja", "-C", str(self.build), "-t", "targets", "all"],
                              capture_output=True, text=True, check=True).stdout
        return sorted(re.findall(r"^(tests_core_\w+): CXX_EXECUTABLE_LINKER", told, re.M))

    def make(self):
        """Compiles the tests in the preset, and links each with the mistakes."""
        subprocess.run(["ninja", "-C", str(self.build), *self.names], check=True,
                       stdout=subprocess.DEVNULL)
        objects = json.loads((self.folder / "objects.json").read_text())
        for name in self.names:
            link(self.build, name, objects)

    def run(self, name, mistake, seen=None):
        """Whether the executable's tests hold."""
        environment = {**os.environ, "REHEARSAL_SCHEMA": str(mistake)}
        environment.pop("REHEARSAL_SCHEMA_SEEN", None)
        if seen is not None:
            environment["REHEARSAL_SCHEMA_SEEN"] = seen

        def alone():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MAX, SECONDS_MAX + 5))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        process = subprocess.Popen([self.folder / name, "--gtest_brief=1"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=environment, preexec_fn=alone)
        try:
            return process.wait(SECONDS_MAX) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def reach(self, size):
        """For each executable the numbers that it reaches with a difference."""
        digest = hashlib.sha256()
        for name in self.names:
            digest.update((self.folder / name).read_bytes())
        kept = self.folder / "tests_reach.json"
        if kept.exists():
            known = json.loads(kept.read_text())
            if known["tests"] == digest.hexdigest():
                return {name: set(numbers) for name, numbers in known["reach"].items()}

        def one(name):
            with tempfile.NamedTemporaryFile() as seen:
                seen.truncate(size)
                if not self.run(name, 0, seen.name):
                    raise RuntimeError(f"{name} fails without a mistake")
                marks = pathlib.Path(seen.name).read_bytes()
                return [number for number, mark in enumerate(marks) if mark]

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            reach = dict(zip(self.names, pool.map(one, self.names)))
        kept.write_text(json.dumps({"tests": digest.hexdigest(), "reach": reach}))
        return {name: set(numbers) for name, numbers in reach.items()}

    def found_by(self, mistake, reach):
        """The first executable that fails with it; None if all hold."""
        for name in self.names:
            if mistake in reach[name] and not self.run(name, mistake):
                return name
        return None
