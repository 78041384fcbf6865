# What gdb knows of a simulated or replayed run. Load it in front of the program:
#
#   gdb -x rehearsal-gdb.py --args rehearsal run storm --seed 7
#
#   rehearsal workers          each worker: what runs there, and what its stacks wait for
#   rehearsal stacks [WORKER]  the backtrace of every stack, also of those that are parked
#   rehearsal stop-at EVENT    runs until the event with this number: that of its line in the file
#                              of --trace, and in the events.txt of a report folder
#
# The run is on one thread: select that. It needs the symbols of the program, no more debugging
# information than the lines that every build has. The other half is core/fibers/inspection.h.
import re

import gdb

REGISTERS = ("rip", "rsp", "rbp", "rbx", "r12", "r13", "r14", "r15")
NO_RUN = "no simulated or replayed run is under way on this thread"


def is_running():
    inferior = gdb.selected_inferior()
    return inferior is not None and inferior.pid != 0


def need_symbol(name):
    try:
        return int(gdb.parse_and_eval("(unsigned long) &%s" % name))
    except gdb.error:
        raise gdb.GdbError(
            "this program has no symbol '%s': it is stripped, or does not link Rehearsal" % name)


def ask(function):
    """The text that the program itself says of its run."""
    if not is_running():
        raise gdb.GdbError("the program is not being run: type 'run', or 'rehearsal stop-at EVENT'")
    need_symbol(function)
    try:
        return gdb.parse_and_eval("((char *(*)(void)) %s)()" % function).string(errors="replace")
    except gdb.error as error:
        raise gdb.GdbError("the program cannot be asked here (a core file never can): %s" % error)


class OtherRegisters:
    """As long as it lasts, gdb sees the stack that begins with these values."""

    def __init__(self, values):
        self.values = values

    def __enter__(self):
        self.frame = gdb.selected_frame()
        gdb.newest_frame().select()
        self.before = [int(gdb.parse_and_eval("(unsigned long) $" + name)) for name in REGISTERS]
        self.write(self.values)

    def __exit__(self, *_):
        gdb.newest_frame().select()
        self.write(self.before)
        if self.frame.is_valid():
            self.frame.select()

    @staticmethod
    def write(values):
        for name, value in zip(REGISTERS, values):
            gdb.execute("set $%s = %d" % (name, value), to_string=True)


class Rehearsal(gdb.Command):
    """Looks into a simulated or replayed run: workers, stacks, stop-at."""

    def __init__(self):
        super().__init__("rehearsal", gdb.COMMAND_DATA, prefix=True)


class Workers(gdb.Command):
    """rehearsal workers: each worker, what runs there, and what its stacks wait for."""

    def __init__(self):
        super().__init__("rehearsal workers", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        gdb.write(ask("rehearsal_debug_workers") or NO_RUN + "\n")


class Stacks(gdb.Command):
    """rehearsal stacks [WORKER] [-full]: the backtrace of every stack of the run, or of one worker.

    Frames of the library between a function of the program and the stack that it is on are left
    out, and those of the standard library; with -full nothing is."""

    def __init__(self):
        super().__init__("rehearsal stacks", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = argument.split()
        full = "-full" in words
        wanted = [word for word in words if word != "-full"]
        lines = ask("rehearsal_debug_stacks").splitlines()
        if not lines:
            is_none = not ask("rehearsal_debug_workers")
            gdb.write((NO_RUN if is_none else "no stack is in use") + "\n")
        stacks = [line.split("\t") for line in lines]
        for name in wanted:
            if name not in [stack[0] for stack in stacks]:
                gdb.write("worker '%s' has no stack\n" % name)
        for worker, label, state, registers in stacks:
            if not wanted or worker in wanted:
                gdb.write("\n%s: %s %s\n" % (worker, label, state))
                self.show(state, [int(word, 16) for word in registers.split()], full)

    @staticmethod
    def show(state, registers, full):
        if registers:
            with OtherRegisters(registers):
                frames = gdb.execute("backtrace", to_string=True)
        elif state == "runs":
            frames = gdb.execute("backtrace", to_string=True)
        else:
            return
        gdb.write(frames if full else shortened(frames))


# The frames that switch and wait, in front of what a program calls; what is everywhere between; and
# the frame below which no code of a program is.
WAITING = re.compile(r" at \S*/(core/fibers|sim/world|sim/replay)/|core/base/node_strand\.")
BETWEEN = re.compile(r" at \S*/include/c\+\+/|core/base/unique_function\.h")
BELOW = re.compile(r"\brun_(user_code|main|body)\b|core/functions/function\.h")


def shortened(frames):
    lines = re.split(r"\n(?=#)", frames.rstrip("\n"))
    first = 0
    while first < len(lines) and WAITING.search(lines[first]):
        first += 1
    last = first
    while last < len(lines) and not BELOW.search(lines[last]):
        last += 1
    kept = [line for line in lines[first:last] if not BETWEEN.search(line)]
    return "\n".join(kept or lines) + "\n"


class StopAt(gdb.Command):
    """rehearsal stop-at EVENT: runs until the event with this number; starts the program if needed.

    The number is that of the event's line in the file of --trace and in the events.txt of a report
    folder."""

    def __init__(self):
        super().__init__("rehearsal stop-at", gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        if not re.fullmatch(r"[1-9][0-9]*", argument.strip()):
            raise gdb.GdbError("name the number of an event: rehearsal stop-at 153")
        event = int(argument)
        need_symbol("rehearsal_stop_at")
        if is_running():
            self.refuse_the_past(event)
        else:
            start = gdb.Breakpoint("main", internal=True)
            start.silent = True
            gdb.execute("run", to_string=True)
            start.delete()
        if not is_running():
            raise gdb.GdbError("the program has ended before its run began")
        gdb.execute("set variable *(unsigned long *) &rehearsal_stop_at = %d" % event)
        stop = gdb.Breakpoint("rehearsal_stopped", internal=True)
        stop.silent = True
        gdb.execute("continue")
        hits = stop.hit_count
        stop.delete()
        if is_running() and hits > 0:
            gdb.execute("set variable *(unsigned long *) &rehearsal_stop_at = 0")
            gdb.write(ask("rehearsal_debug_workers"))
        elif not is_running():
            gdb.write("the run has ended before event %d\n" % event)

    @staticmethod
    def refuse_the_past(event):
        now = re.search(r"\bevent (\d+)", ask("rehearsal_debug_workers"))
        if now and int(now.group(1)) >= event:
            raise gdb.GdbError("event %d has passed, the run is at event %s: type 'kill', and "
                               "stop-at starts it again" % (event, now.group(1)))


Rehearsal()
Workers()
Stacks()
StopAt()
gdb.write("rehearsal: 'rehearsal workers', 'rehearsal stacks', 'rehearsal stop-at EVENT'\n")
