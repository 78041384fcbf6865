// The run: what the page was given, made easy to ask.

const run = JSON.parse(document.getElementById("history").textContent);
const NOBODY = -1;

const KIND_GROUPS = [
  ["messages", "call", ["frame", "frame_sent", "frame_resent", "frame_dropped"]],
  ["calls", "call", ["api_call", "call_executed", "call_served", "call_completed"]],
  ["exceptions", "fault", ["thrown"]],
  ["references", "reference", ["owner_created", "owner_dropped", "fork_registered",
    "fork_deleted", "fork_refused", "user_created", "user_deleted"]],
  ["autograd", "autograd", ["context_opened", "context_released", "pass_started", "pass_ended",
    "optimizer_stepped"]],
  ["notes", "reference", ["note"]],
  ["faults", "fault", ["crash", "restart", "connection_broken", "partition", "partition_healed",
    "calm", "decision", "peer_lost", "peer_fenced"]],
  ["devices", "device", ["device_given", "device_done", "device_went_on", "device_awaited"]],
  ["executions", "quiet", ["execution_started", "execution_parked", "execution_resumed",
    "execution_ended"]],
];
// Of a backward pass; each has a colour of its own, which is also the group's class.
const PASS_GROUPS = [
  ["gradients", ["Gradients", "GradientsAnswered"]],
  ["marks", ["Marks", "MarksAnswered"]],
  ["waves", ["PassFinish", "PassFinished", "PassFailed"]],
];
const OTHER_GROUP = "other";
const ALL_GROUPS = [...KIND_GROUPS.map(([name]) => name), ...PASS_GROUPS.map(([name]) => name),
  OTHER_GROUP];
const groupOfKind = new Map();
for (const [name, , kinds] of KIND_GROUPS) for (const kind of kinds) groupOfKind.set(kind, name);
const classOfGroup = new Map(KIND_GROUPS.map(([name, style]) => [name, style]));
const groupOfMessage = new Map();
for (const [name, texts] of PASS_GROUPS) {
  classOfGroup.set(name, name);
  for (const text of texts) groupOfMessage.set(text, name);
}

// The order of these fields is html_page.cc's.
const moments = run.moments.map((field, number) => {
  const kind = run.strings[field[0]];
  const messageName = run.strings[field[15]];
  return {
    number, kind, messageName,
    group: groupOfMessage.get(messageName) || groupOfKind.get(kind) || OTHER_GROUP,
    when: field[1], worker: field[2], life: field[3], peer: field[4], frame: field[5],
    attempt: field[6], bytes: field[7], id: run.strings[field[8]], text: run.strings[field[9]],
    detail: run.strings[field[10]], tables: run.strings[field[11]], message: field[12],
    inStory: field[13] === 1,
    places: run.strings[field[14]].split("\n").filter((place) => place !== ""),
    stream: field[16],  // of a device; NOBODY: none
    causes: field.slice(17),
  };
});
// Beside the workers, the streams of their devices have lanes.
const OF_STREAM = new Set(["device_done", "device_went_on"]);
const laneOfStream = (stream) => run.workers.length + stream;
const streamOfLane = (lane) => run.streams[lane - run.workers.length];
// Short: "sim:0/12".
const laneLabel = (lane) => lane < run.workers.length ? run.workers[lane] : streamOfLane(lane)[1];
const laneName = (lane) => lane < run.workers.length ? run.workers[lane] : streamOfLane(lane)[2];
const workerOfLane = (lane) => lane < run.workers.length
  ? lane : streamOfLane(lane)[0];
// Where a moment is drawn.
const laneOfMoment = (moment) => OF_STREAM.has(moment.kind) ? laneOfStream(moment.stream)
  : moment.worker;
const messages = run.messages.map(([sent, arrived, lostAt]) => ({sent, arrived, lostAt}));

const effects = moments.map(() => []);
for (const moment of moments)
  for (const cause of moment.causes) effects[cause].push(moment.number);

// "worker0", or "worker0.1" in its second life.
function placeOf(moment) {
  if (moment.worker === NOBODY || moment.kind === "connection_broken") return "";
  const name = run.workers[moment.worker];
  return moment.life > 0 ? name + "." + moment.life : name;
}

// Seconds of virtual time, to the microsecond.
function timeOf(nanoseconds) {
  return (nanoseconds / 1e9).toFixed(6);
}

// Of what happened before this moment, and itself: the closure of causes.
function pastOf(number) {
  const past = new Uint8Array(moments.length);
  past[number] = 1;
  for (let i = number; i >= 0; --i)
    if (past[i]) for (const cause of moments[i].causes) past[cause] = 1;
  return past;
}

// What a search looks at.
function wordsOf(moment) {
  return (placeOf(moment) + " " + moment.kind + " " + moment.text + " " + moment.id + " " +
          moment.detail + " " + moment.places.join(" ")).toLowerCase();
}

// The latest tables of a worker's life up to a moment.
function tablesAt(moment) {
  for (let i = moment.number; i >= 0; --i) {
    const other = moments[i];
    if (other.worker === moment.worker && other.life === moment.life && other.tables !== "")
      return other.tables;
  }
  return "";
}

// When each life of a worker ended by a crash, and when the next began: [from, to) by moment.
const absences = run.workers.map(() => []);
for (const moment of moments) {
  if (moment.kind === "crash") absences[moment.worker].push([moment.number, moments.length]);
  if (moment.kind === "restart" && absences[moment.worker].length > 0)
    absences[moment.worker][absences[moment.worker].length - 1][1] = moment.number;
}
