#include "command_line/help_texts.h"

#include <map>

namespace rehearsal::command_line {
namespace {

const std::map<std::string, std::string> kExamples = {
    {"list", "  rehearsal list --json\n"},
    {"run",
     "  rehearsal run storm --seed 7 --faults hostile --crashes 1\n"
     "  rehearsal run rnn --network wan --without resets,partitions\n"
     "  rehearsal run rnn --net tcp --set size=tiny\n"
     "  rehearsal run rnn --net tcp --record records --record-size 1G\n"},
    {"hunt",
     "  rehearsal hunt storm --seeds 2000 --faults hostile --crashes 1\n"
     "  rehearsal hunt storm --seeds 2000 --crashes 2 --restarts drawn\n"
     "  rehearsal hunt rnn rl --for 10m --out found\n"
     "  rehearsal hunt --for 1h --out found       all scenarios, each in several ways\n"
     "  rehearsal hunt rnn rl --for 2000runs --shrink-for 300runs      the same on every machine\n"
     "  rehearsal hunt storm --first-seed 7 --strategy delays:bound=1\n"
     "  rehearsal hunt storm --commit $(git rev-parse HEAD) --shard 0/4 --json > shard0.json\n"},
    {"merge", "  rehearsal merge shard0.json shard1.json --junit hunt.xml\n"},
    {"shrink",
     "  rehearsal shrink storm --seed 61 --set size=tiny --out failure.run\n"
     "  rehearsal shrink failure.run --for 5m --out failure.run    goes on from there\n"},
    {"explore",
     "  rehearsal explore rref_fork\n"
     "  rehearsal explore rref_fork --set use=1 --set faults=0 --for 5m\n"
     "  rehearsal explore rref_fork --only crash:1 --only none\n"
     "  rehearsal explore rref_fork --out found\n"},
    {"verify",
     "  rehearsal verify storm --seeds 100\n"
     "  rehearsal verify rnn --set size=full --faults hostile --json\n"},
    {"worker",
     "  RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 rehearsal worker rnn\n"
     "  rehearsal worker rnn --auth secret:file=group.secret --listen 10.0.0.7:7000\n"
     "  rehearsal worker rnn --listen 0.0.0.0:7000 --advertise gpu3.example.org:31700\n"
     "  REHEARSAL_RECORD=records torchrun --no-python --nproc-per-node 4 rehearsal worker rnn\n"}};

}  // namespace

const char* const kOverview =
    "rehearsal: the same distributed LibTorch program, simulated and over TCP\n"
    "\n"
    "  rehearsal list                   the scenarios, one line each\n"
    "  rehearsal run NAME               one run, in the simulator or as processes over TCP\n"
    "  rehearsal hunt [NAME...]         many seeds on all cores, until one fails; of all\n"
    "                                   scenarios for a minute, if none is named\n"
    "  rehearsal merge FILE...          what all shards of one hunt found, as one result\n"
    "  rehearsal shrink NAME            a failing run made small: few decisions, least values\n"
    "  rehearsal replay FILE            the run that 'shrink --out FILE' has written down,\n"
    "                                   or the worker that 'run --net tcp --record' recorded\n"
    "  rehearsal check FOLDER           a run over TCP, judged from what its workers recorded\n"
    "  rehearsal explore NAME           every order of messages of a small cluster\n"
    "  rehearsal report FILE            that run as text, as a page, as a trace for Perfetto\n"
    "  rehearsal verify NAME            every seed twice, in two different processes\n"
    "  rehearsal worker NAME            one real worker; rank and address from the environment\n"
    "\n"
    "rehearsal COMMAND --help lists the flags of a command.\n"
    "rehearsal --version says which program this is.\n"
    "Exit status: 0 holds, 1 failed, 2 wrong usage, 3 nondeterminism found by verify.\n";

const char* const kVerifyHelp =
    "Runs every seed in two processes. The second has other addresses, memory, variables, locale,\n"
    "time zone, working folder and core, and takes the seeds in reverse. Where two runs differ,\n"
    "it names the first event that does, its key and what it follows from, and exits with 3.\n";

const char* const kExitStatus =
    "Exit status: 0 holds, 1 failed, 2 wrong usage, 3 nondeterminism found by verify\n";

const char* const kReplayHelp =
    "Usage: rehearsal replay FILE [--json] [--trace FILE]\n"
    "\n"
    "Runs what FILE says: the arguments of 'run', a flag on each line; lines that begin with #\n"
    "are for people. 'shrink --out FILE' and 'hunt --out DIRECTORY' write such files.\n"
    "\n"
    "A record of a real worker ('run --net tcp --record FOLDER', 'worker --record FOLDER', or the\n"
    "variable REHEARSAL_RECORD) is run again as that worker alone: it is given all that it was\n"
    "given then, in the same order, and whatever it does is compared. Only the build that "
    "recorded\n"
    "it can do that. The last line starts it in a debugger.\n"
    "\n"
    "  --json        One JSON object on standard output, nothing else\n"
    "  --trace FILE  File for all events, one line each\n"
    "\n"
    "Examples:\n"
    "  rehearsal replay found/failure.run\n"
    "  rehearsal replay records/ps.record\n"
    "  gdb --args rehearsal replay records/ps.record\n"
    "\n"
    "Exit status: 0 holds, 1 failed, 2 wrong usage, 3 nondeterminism found by verify\n";

const char* const kCheckHelp =
    "Usage: rehearsal check FOLDER [--json]\n"
    "\n"
    "Judges a run over TCP from the records of all its workers, in FOLDER and below it, by the\n"
    "rules that every simulated run has to keep: no function runs twice for a call, no call ends\n"
    "twice, late or without having been made, no value is dropped while somebody holds it, no\n"
    "table keeps anything. Each worker is replayed first, which must do what it did. A worker of\n"
    "which the record stops has crashed.\n"
    "\n"
    "  --json  One JSON object on standard output, nothing else\n"
    "\n"
    "Examples:\n"
    "  rehearsal run rnn --net tcp --set size=tiny --record records; rehearsal check records\n"
    "\n"
    "Exit status: 0 holds, 1 failed, 2 wrong usage\n";

const std::string& examples_of(const std::string& command) { return kExamples.at(command); }

}  // namespace rehearsal::command_line
