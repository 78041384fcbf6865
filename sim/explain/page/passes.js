// Backward passes: what each worker that takes part waits for at a moment, as a graph and in words.

// The order of these fields is html_page.cc's.
const passes = run.passes.map(([context, epoch, starter, fast]) =>
  ({context: run.strings[context], epoch, starter, fast: fast === 1}));
const autogradNotes = run.autograd.map(([moment, pass, context, carried, wave, ...about]) => ({
  moment: moments[moment], pass: pass < 0 ? null : passes[pass], context: run.strings[context],
  carried: run.strings[carried], wave: run.strings[wave], about: about.map((id) => run.strings[id]),
}));
const passOfMoment = new Map();
for (const {moment, pass} of autogradNotes) if (pass) passOfMoment.set(moment.number, pass);

const WAVE_TEXTS = {
  check: "is it complete?", resume: "what is not marked gets no gradient",
  commit: "keep the gradients",
};

// One worker in a pass.
class PassWorker {
  constructor(worker) {
    this.worker = worker;
    this.begin();
  }
  begin() {
    this.runs = false;
    this.ended = null;        // how it ended here: "", or why it failed
    this.sends = new Map();   // its send functions, each with the moment at which its message left
    this.given = new Set();   // of these, those that have got their gradients
    this.marked = new Set();  // and those that the roots are known to depend on
  }
  takesPart() { return this.runs || this.ended !== null; }
}

// A pass as it is after a moment: its workers, and the messages that wait for their answer.
class PassState {
  constructor(pass, number) {
    this.pass = pass;
    this.workers = run.workers.map((_, worker) => new PassWorker(worker));
    this.open = [];
    for (const note of notesWithCrashes) {
      if (note.moment.number > number) break;
      this.take(note);
    }
    this.open = this.open.filter(({from}) => this.workers[from].runs);
  }

  take(note) {
    const {moment} = note;
    const self = this.workers[moment.worker];
    if (moment.kind === "crash") {
      self.begin();
      this.open = this.open.filter(({from}) => from !== moment.worker);
      return;
    }
    if (note.context !== this.pass.context) return;
    if (moment.kind === "frame_sent" && note.carried !== "" && !self.sends.has(note.carried))
      self.sends.set(note.carried, moment.number);
    if (note.pass !== this.pass) return;
    if (moment.kind === "pass_started") self.runs = true;
    if (moment.kind === "pass_ended") {
      self.runs = false;
      self.ended = moment.text.replace(/^ends a backward pass(: )?/, "")
        .replace(/ ?\[[^[]*\]$/, "");
    }
    if (moment.kind === "frame_sent") this.send(note);
    if (moment.kind === "frame") this.arrive(note, self);
  }

  send({moment, about, wave}) {
    const kind = {Gradients: "gradients", Marks: "marks", PassFinish: "waves"}[moment.messageName];
    if (!kind) return;
    this.open.push({kind, from: moment.worker, to: moment.peer, frame: moment.frame, about, wave,
      sent: moment.number, taken: false});
  }

  arrive({moment, about}, self) {
    const sender = moment.peer;
    const taken = this.open.find(({from, to, frame}) =>
      from === sender && to === moment.worker && frame === moment.frame);
    if (taken) taken.taken = true;
    if (moment.messageName === "Gradients") for (const id of about) self.given.add(id);
    if (moment.messageName === "Marks") for (const id of about) self.marked.add(id);
    const answered = {GradientsAnswered: "gradients", MarksAnswered: "marks",
      PassFinished: "waves"}[moment.messageName];
    if (!answered) return;
    const place = this.open.findIndex((message) => message.kind === answered &&
      message.from === moment.worker && message.to === sender && message.taken &&
      (answered !== "gradients" || message.about[0] === about[0]));
    if (place >= 0) this.open.splice(place, 1);
  }

  // The send functions of a worker that are known to get gradients and have not, by their ids. A
  // pass in FAST mode expects all; in SMART mode it knows of those that marks have reached.
  lacking({sends, given, marked}) {
    const expected = this.pass.fast ? [...sends.keys()] : [...marked];
    return expected.filter((id) => !given.has(id));
  }

  takesPart() { return this.workers.filter((worker) => worker.takesPart()); }
  runs() { return this.workers.some(({runs}) => runs); }
}

const notesWithCrashes = [...autogradNotes,
  ...moments.filter(({kind}) => kind === "crash").map((moment) => ({moment, context: ""})),
].sort((one, other) => one.moment.number - other.moment.number);

// That which the moment belongs to; else the last of those that run there; null: none does.
function passAt(number) {
  if (passOfMoment.has(number)) return passOfMoment.get(number);
  const running = new Map();  // of each pass, how many workers it has begun at and not ended
  for (const {moment, pass} of autogradNotes) {
    if (moment.number > number) break;
    const step = {pass_started: 1, pass_ended: -1}[moment.kind];
    if (pass && step) running.set(pass, (running.get(pass) || 0) + step);
  }
  const last = [...running].filter(([, count]) => count > 0).pop();
  return last ? last[0] : null;
}

// --- the graph ---

const SVG = "http://www.w3.org/2000/svg";
function svgElement(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const GRAPH_WIDTH = 336;
const NODE_SIZE = 9;
// How far the arrows of each kind bend, so that none hides another; as a part of their length.
const BENDS = {gradients: 0.09, marks: 0.18, waves: 0.27};

function placesOnCircle(workers) {
  const radius = workers.length === 1 ? 0 : Math.min(105, 50 + 8 * workers.length);
  const height = (workers.length <= 2 ? 0 : 2 * radius) + 84;
  const places = new Map(workers.map(({worker}, number) => {
    const angle = 2 * Math.PI * number / workers.length - Math.PI;
    return [worker, [GRAPH_WIDTH / 2 + radius * 1.15 * Math.cos(angle),
      height / 2 - 4 + radius * Math.sin(angle)]];
  }));
  return [places, height];
}

// Messages of one kind between two workers are one arrow.
function arrowsOf(open, places) {
  const arrows = new Map();
  for (const message of open) {
    const {kind, from, to, taken} = message;
    if (from === to || !places.has(from) || !places.has(to)) continue;
    const key = kind + " " + from + " " + to;
    const arrow = arrows.get(key) || {kind, from, to, count: 0, taken: 0};
    arrow.count += 1;
    arrow.taken += taken ? 1 : 0;
    arrows.set(key, arrow);
  }
  return [...arrows.values()];
}

function arrowElement({kind, from, to, count, taken}, places) {
  const [fromX, fromY] = places.get(from);
  const [toX, toY] = places.get(to);
  const length = Math.hypot(toX - fromX, toY - fromY);
  const acrossX = (toY - fromY) / length;
  const acrossY = (fromX - toX) / length;
  const bend = length * BENDS[kind];
  const middleX = (fromX + toX) / 2 + acrossX * bend * 2;
  const middleY = (fromY + toY) / 2 + acrossY * bend * 2;
  // Ends at the edge of the worker's circle, not in its middle.
  const last = Math.hypot(toX - middleX, toY - middleY);
  const endX = toX - (toX - middleX) / last * (NODE_SIZE + 7);
  const endY = toY - (toY - middleY) / last * (NODE_SIZE + 7);
  const what = count + " " + KIND_WORDS[kind][count === 1 ? 0 : 1];
  const group = svgElement("g", {class: "arrow " + kind, "data-arrow": kind + " " +
    run.workers[from] + " " + run.workers[to] + " " + count},
  svgElement("title", {}, run.workers[from] + " waits for the answer of " + run.workers[to] +
    " to " + what + (taken === count ? "" : ", " + (count - taken) + " still on the way")),
  svgElement("path", {
    d: "M" + [fromX, fromY].map(Math.round) + " Q" + [middleX, middleY].map(Math.round) + " " +
      [endX, endY].map(Math.round),
    "marker-end": "url(#head-" + kind + ")", "stroke-dasharray": taken === 0 ? "4 3" : "none"}));
  if (count > 1)
    group.append(svgElement("text", {x: (fromX + toX) / 2 + acrossX * bend,
      y: (fromY + toY) / 2 + acrossY * bend + 4}, String(count)));
  return group;
}
const KIND_WORDS = {
  gradients: ["message with gradients", "messages with gradients"],
  marks: ["message with marks", "messages with marks"], waves: ["wave", "waves"],
};

function workerElement(member, state, [x, y]) {
  const name = run.workers[member.worker];
  const lacking = state.lacking(member).length;
  const fate = member.runs ? "runs" : member.ended === "" ? "done" : "failed";
  const group = svgElement("g", {class: "worker " + fate, "data-worker": name + " " + fate},
    svgElement("title", {}, waitsOf(member, state).join("\n")),
    svgElement("circle", {cx: x, cy: y, r: NODE_SIZE}));
  if (member.worker === state.pass.starter)
    group.append(svgElement("circle", {cx: x, cy: y, r: NODE_SIZE + 3.5, class: "starter"}));
  if (member.runs && lacking > 0)
    group.append(svgElement("text", {x, y: y + 4, class: "lacking"}, String(lacking)));
  const label = name.length > 16 ? name.slice(0, 7) + "…" + name.slice(-8) : name;
  group.append(svgElement("text", {x, y: y + NODE_SIZE + 16, class: "name"}, label));
  return group;
}

function passGraph(state) {
  const workers = state.takesPart();
  const [places, height] = placesOnCircle(workers);
  const heads = Object.keys(BENDS).map((kind) => svgElement("marker", {id: "head-" + kind,
    class: "head " + kind, viewBox: "0 0 8 8", refX: 2, refY: 4, markerWidth: 8, markerHeight: 8,
    markerUnits: "userSpaceOnUse", orient: "auto"}, svgElement("path", {d: "M0 0 L8 4 L0 8 Z"})));
  return svgElement("svg", {id: "pass-graph", role: "img", width: GRAPH_WIDTH, height,
    viewBox: "0 0 " + GRAPH_WIDTH + " " + height, "aria-label": "Who waits for whom"},
  svgElement("defs", {}, ...heads),
  ...arrowsOf(state.open, places).map((arrow) => arrowElement(arrow, places)),
  ...workers.map((member) => workerElement(member, state, places.get(member.worker))));
}

// --- in words ---

function shortList(ids) {
  const shownMost = 3;
  const rest = ids.length - shownMost;
  return ids.slice(0, shownMost).join(", ") + (rest > 0 ? " and " + rest + " more" : "");
}

function waitsOf(member, state) {
  if (!member.runs)
    return [member.ended === "" ? "has ended" : "has failed: " + member.ended];
  const lines = [];
  const lacking = state.lacking(member);
  const sends = member.sends.size;
  const given = [...member.sends.keys()].filter((id) => member.given.has(id)).length;
  if (given < sends || lacking.length > 0)
    lines.push("has gradients for " + given + " of " + sends +
      (sends === 1 ? " send function" : " send functions") +
      (lacking.length > 0 ? "; has to get some for " + shortList(lacking) : ""));
  for (const {kind, to, taken, about, wave} of state.open.filter(({from}) =>
    from === member.worker)) {
    const what = kind === "gradients" ? "gradients of " + shortList(about)
      : kind === "marks" ? "marks of " + shortList(about)
        : "the wave '" + (WAVE_TEXTS[wave] || wave) + "'";
    lines.push("waits for " + run.workers[to] + " to answer " + what +
      (taken ? "" : ", which " + (kind === "waves" ? "is" : "are") + " on the way"));
  }
  return lines.length > 0 ? lines : ["waits for no answer"];
}

// How the pass that this moment belongs to, or runs at it, stands.
function addPass(moment) {
  const pass = passAt(moment.number);
  if (pass === null) return;
  const state = new PassState(pass, moment.number);
  const section = document.createElement("section");
  section.id = "pass";
  section.append(textElement("h3", "", "Backward pass " + pass.epoch + " of context " +
    pass.context + ", started by " + (run.workers[pass.starter] || "nobody") +
    (pass.fast ? ", mode FAST" : "") + (state.runs() ? "" : ": no worker is in it")));
  if (state.takesPart().length > 0) section.append(passGraph(state));
  const list = document.createElement("dl");
  for (const member of state.takesPart()) {
    list.append(textElement("dt", member.runs ? "" : "quiet", run.workers[member.worker]));
    for (const line of waitsOf(member, state))
      list.append(textElement("dd", member.runs || member.ended === "" ? "" : "fault", line));
  }
  section.append(list);
  panel.append(section);
  addJumps("Not yet answered in this pass", state.open.map(({sent}) => sent));
}
