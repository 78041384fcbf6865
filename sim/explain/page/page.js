// Head, filters and keys; then the page begins.

const search = document.getElementById("search");
const countElement = document.getElementById("count");
const help = document.getElementById("help");

const filter = {
  workers: new Set(run.workers.keys()),
  groups: new Set(ALL_GROUPS),
  text: "",
  passesOnly: false,
  storyOnly: run.failure !== "",
  folded: run.shutdownFrom >= 0,  // the shutdown
};

function isShown(moment) {
  if (filter.folded && moment.number >= run.shutdownFrom) return false;
  if (filter.storyOnly && !moment.inStory) return false;
  if (filter.passesOnly && !passOfMoment.has(moment.number)) return false;
  if (!filter.groups.has(moment.group)) return false;
  const concerned = moment.worker === NOBODY || filter.workers.has(moment.worker) ||
    (moment.kind === "connection_broken" && filter.workers.has(moment.peer));
  return concerned && (filter.text === "" || wordsOf(moment).includes(filter.text));
}

function applyFilter() {
  const shown = moments.filter(isShown).map(({number}) => number);
  const used = new Set(shown.map((number) => laneOfMoment(moments[number])));
  const streams = [...run.streams.keys()].filter((stream) => used.has(laneOfStream(stream)));
  const lanes = [...run.workers.keys()].filter((worker) => filter.workers.has(worker))
    .flatMap((worker) => [worker, ...streams.filter((stream) => run.streams[stream][0] === worker)
      .map(laneOfStream)]);
  view.foldText = !filter.folded ? "" : "… shutdown, " + run.shutdownMessages +
    (run.shutdownMessages === 1 ? " message" : " messages");
  showMoments(shown, lanes);
  countElement.textContent = shown.length === moments.length
    ? moments.length + " events" : shown.length + " of " + moments.length + " events";
}

function select(number) {
  view.selected = number;
  view.past = number === null ? null : pastOf(number);
  showPanel();
  if (number === null) return draw();
  if (view.rowOf[number] < 0 && filter.folded && number >= run.shutdownFrom) unfold();
  if (view.rowOf[number] < 0) clearFilters();
  bringIntoView(number);
}

function unfold() {
  filter.folded = false;
  refreshButtons();
  applyFilter();
}

function moveSelection(rows) {
  if (view.shown.length === 0) return;
  const now = view.selected === null ? -1 : view.rowOf[view.selected];
  const start = now >= 0 ? now : Math.floor(scroller.scrollTop / view.rowHeight) - Math.sign(rows);
  select(view.shown[Math.max(0, Math.min(view.shown.length - 1, start + rows))]);
}

// The event before or after this one at the same worker.
function moveAlongWorker(step) {
  if (view.selected === null) return moveSelection(step);
  const worker = moments[view.selected].worker;
  for (let row = view.rowOf[view.selected] + step; row >= 0 && row < view.shown.length; row += step)
    if (moments[view.shown[row]].worker === worker) return select(view.shown[row]);
}

function jumpToOtherEnd() {
  if (view.selected === null || moments[view.selected].message < 0) return;
  const {sent, arrived} = messages[moments[view.selected].message];
  const other = view.selected === sent ? arrived : sent;
  if (other >= 0) select(other);
}

// Over a message rather than along the worker, if it has both.
function jumpToCause() {
  if (view.selected === null) return;
  const causes = moments[view.selected].causes;
  if (causes.length > 0) select(causes[causes.length - 1]);
}

// --- filters ---

function toggleButton(group, label, pressed, onToggle, title) {
  const button = textElement("button", "", label);
  button.setAttribute("aria-pressed", pressed());
  if (title) button.title = title;
  button.addEventListener("click", () => {
    onToggle();
    refreshButtons();
    applyFilter();
  });
  group.append(button);
  buttons.push(() => button.setAttribute("aria-pressed", pressed()));
}
const buttons = [];
const refreshButtons = () => buttons.forEach((refresh) => refresh());

const flip = (set, member) => { if (!set.delete(member)) set.add(member); };

function clearFilters() {
  filter.workers = new Set(run.workers.keys());
  filter.groups = new Set(ALL_GROUPS);
  filter.storyOnly = false;
  filter.passesOnly = false;
  filter.text = search.value = "";
  refreshButtons();
  applyFilter();
}

function makeFilters() {
  const story = document.getElementById("story-switch");
  toggleButton(story, "All", () => !filter.storyOnly, () => { filter.storyOnly = false; },
    "Every event of the run");
  toggleButton(story, "Story", () => filter.storyOnly, () => { filter.storyOnly = true; },
    "Only the events that matter most to how it ended  ( s )");
  if (run.shutdownFrom >= 0)
    toggleButton(story, "Shutdown", () => !filter.folded,
      () => { filter.folded = !filter.folded; }, "The events after the program's own  ( d )");
  if (passes.length > 0)
    toggleButton(story, "Passes", () => filter.passesOnly,
      () => { filter.passesOnly = !filter.passesOnly; },
      "Only what belongs to a backward pass  ( p )");
  const workers = document.getElementById("worker-filter");
  run.workers.forEach((name, worker) => toggleButton(workers, name,
    () => filter.workers.has(worker), () => flip(filter.workers, worker)));
  const kinds = document.getElementById("kind-filter");
  const legend = new Set(PASS_GROUPS.map(([name]) => name));
  for (const name of ALL_GROUPS) {
    if (!moments.some((moment) => moment.group === name)) continue;
    toggleButton(kinds, name, () => filter.groups.has(name), () => flip(filter.groups, name));
    if (legend.has(name)) kinds.lastChild.classList.add("legend", name);
  }
  search.addEventListener("input", () => {
    filter.text = search.value.trim().toLowerCase();
    applyFilter();
  });
}

// --- keys ---

const KEYS = [
  [["ArrowDown", "j"], "↓  j", "next event", () => moveSelection(1)],
  [["ArrowUp", "k"], "↑  k", "event before", () => moveSelection(-1)],
  [["ArrowRight"], "→", "next event of the same worker", () => moveAlongWorker(1)],
  [["ArrowLeft"], "←", "event before of the same worker", () => moveAlongWorker(-1)],
  [["PageDown"], "Page ↓", "a page down", () => moveSelection(pageRows())],
  [["PageUp"], "Page ↑", "a page up", () => moveSelection(-pageRows())],
  [["Home"], "Home", "first event", () => moveSelection(-moments.length)],
  [["End"], "End", "last event", () => moveSelection(moments.length)],
  [["m"], "m", "the message's other end", jumpToOtherEnd],
  [["c"], "c", "what caused it", jumpToCause],
  [["f"], "f", "where it fails", () => { if (run.failedAt >= 0) select(run.failedAt); }],
  [["a"], "a", "first event of the critical pair",
    () => { if (run.critical) select(run.critical.first); }],
  [["b"], "b", "second event of the critical pair",
    () => { if (run.critical && run.critical.second >= 0) select(run.critical.second); }],
  [["s"], "s", "story, or all events",
    () => { filter.storyOnly = !filter.storyOnly; refreshButtons(); applyFilter(); }],
  [["d"], "d", "the shutdown shown, or folded", () => {
    filter.folded = !filter.folded && run.shutdownFrom >= 0;
    refreshButtons();
    applyFilter();
  }],
  [["p"], "p", "only what belongs to a backward pass, or all", () => {
    filter.passesOnly = !filter.passesOnly && passes.length > 0;
    refreshButtons();
    applyFilter();
  }],
  [["/"], "/", "search", () => search.focus()],
  [["+", "="], "+", "larger", () => setZoom(1)],
  [["-"], "−", "smaller", () => setZoom(-1)],
  [["Escape"], "Esc", "select nothing; end the search", () => select(null)],
  [["?"], "?", "these keys", () => help.showModal()],
];
const pageRows = () => Math.max(1, Math.floor(scroller.clientHeight / view.rowHeight) - 2);

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.target === search) {
    if (event.key === "Escape" || event.key === "Enter") scroller.focus();
    if (event.key === "Escape") clearFilters();
    return;
  }
  if (event.target.closest && event.target.closest("button") &&
      (event.key === "Enter" || event.key === " ")) return;
  const found = KEYS.find(([names]) => names.includes(event.key));
  if (!found) return;
  event.preventDefault();
  found[3]();
}

// --- the head ---

function jumpLink(text, number) {
  const button = textElement("button", "", text);
  button.addEventListener("click", () => select(number));
  return button;
}

function makeHead() {
  document.title = run.title + (run.failure ? " — failed" : "");
  document.getElementById("title").textContent = run.title;
  const badge = document.getElementById("badge");
  badge.textContent = run.failure ? "FAILED" : "HOLDS";
  if (run.failure) badge.className = "failed";
  document.getElementById("failure").textContent = run.failure;
  makeThrown();
  const critical = document.getElementById("critical");
  critical.textContent = run.notes.join("\n");
  if (run.critical) {
    critical.append(run.critical.lines.join("\n") + " ", jumpLink("A", run.critical.first));
    if (run.critical.second >= 0) critical.append(" ", jumpLink("B", run.critical.second));
  }
  if (run.command === "") return;
  document.getElementById("command").hidden = false;
  document.getElementById("command-text").textContent = run.command;
  const copy = document.getElementById("copy");
  copy.addEventListener("click", async () => {
    const range = document.createRange();
    range.selectNodeContents(document.getElementById("command-text"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    try {
      await navigator.clipboard.writeText(run.command);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Selected";  // a page from a file may not write to the clipboard
    }
  });
}

// What was thrown, each time with a line for each place in the program's source.
function makeThrown() {
  const thrown = document.getElementById("thrown");
  for (const [line, number] of run.thrown) {
    const isPlace = line.startsWith("  ");
    const element = textElement(isPlace ? "code" : "p", "", line.trim());
    if (!isPlace) element.append(" ", jumpLink("show", number));
    thrown.append(element);
  }
}

// At the critical pair; the failure stays selected, and its past bright, if both fit.
function openAtStory() {
  const first = run.critical ? run.critical.first : run.failedAt;
  const last = run.failedAt >= 0 ? run.failedAt : first;
  if (last < 0) {
    if (run.failure !== "") scroller.scrollTop = scroller.scrollHeight;
    return;
  }
  select(last);
  if (view.rowOf[first] < 0) return select(first);
  const rows = view.rowOf[last] - view.rowOf[first];
  if (rows < 0 || rows > pageRows() * 0.7) return select(first);
  scroller.scrollTop = view.rowOf[first] * view.rowHeight - scroller.clientHeight / 5;
  draw();
}

function makeHelp() {
  const list = document.getElementById("keys");
  for (const [, names, meaning] of KEYS)
    list.append(textElement("dt", "", names), textElement("dd", "", meaning));
}

// --- begin ---

readColors();
makeHead();
makeFilters();
makeHelp();
applyFilter();
showPanel();
document.addEventListener("keydown", onKey);
scroller.addEventListener("scroll", () => requestAnimationFrame(draw));
rowsElement.addEventListener("click", (event) => {
  if (event.target.id === "fold") return unfold();
  const row = event.target.closest(".row");
  if (row) select(Number(row.dataset.event));
});
overview.addEventListener("click", (event) => {
  const part = event.offsetY / overview.clientHeight;
  scroller.scrollTop = part * view.shown.length * view.rowHeight - scroller.clientHeight / 2;
});
document.getElementById("zoom-in").addEventListener("click", () => setZoom(1));
document.getElementById("zoom-out").addEventListener("click", () => setZoom(-1));
document.getElementById("help-button").addEventListener("click", () => help.showModal());
scroller.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  setZoom(event.deltaY < 0 ? 1 : -1);
}, {passive: false});
new ResizeObserver(resize).observe(scroller);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColors();
  draw();
});
openAtStory();
scroller.focus();
