// The diagram: rows of text, of which only the visible ones exist, over a canvas with the lanes.

const scroller = document.getElementById("scroller");
const rowsElement = document.getElementById("rows");
const tall = document.getElementById("tall");
const canvas = document.getElementById("canvas");
const overview = document.getElementById("overview");
const lanesElement = document.getElementById("lanes");

const ROW_HEIGHTS = [4, 7, 11, 16, 20, 24, 30, 38];
const LEAST_ROW_WITH_TEXT = 11;
const TIME_WIDTH = 92;
// Beyond so many rows outside the view, arrows that only cross it are not looked for.
const ROWS_AROUND = 400;

const view = {
  shown: [],                // moments, by row
  rowOf: new Int32Array(0), // of each moment; -1: not shown
  lanes: [],                // workers, and streams behind theirs
  laneOf: new Map(),
  rowHeight: 24,
  selected: null,
  past: null,               // of the selected one
  foldText: "",             // of the row in place of what is folded; empty: nothing is
};

const laneWidth = () => {
  const room = (scroller.clientWidth - TIME_WIDTH) * 0.55;
  const widest = 120 * Math.max(0.6, view.rowHeight / 24);
  return Math.max(14, Math.min(widest, room / Math.max(1, view.lanes.length)));
};
const laneX = (lane) => TIME_WIDTH + (view.laneOf.get(lane) + 0.5) * laneWidth();
const rowY = (row) => (row + 0.5) * view.rowHeight - scroller.scrollTop;

function showMoments(shown, lanes) {
  const anchor = view.selected;
  view.shown = shown;
  view.rowOf = new Int32Array(moments.length).fill(-1);
  shown.forEach((number, row) => { view.rowOf[number] = row; });
  view.lanes = lanes;
  view.laneOf = new Map(lanes.map((lane, place) => [lane, place]));
  resize();
  if (anchor !== null) bringIntoView(anchor, "center");
}

function resize() {
  tall.style.height = (view.shown.length + (view.foldText === "" ? 0 : 1)) * view.rowHeight + "px";
  for (const surface of [canvas, overview]) {
    const ratio = window.devicePixelRatio || 1;
    const width = surface === canvas ? scroller.clientWidth : overview.clientWidth;
    const height = surface === canvas ? scroller.clientHeight : overview.clientHeight;
    if (surface === canvas) {
      canvas.style.height = height + "px";
      canvas.style.marginBottom = -height + "px";
    }
    surface.width = Math.max(1, Math.round(width * ratio));
    surface.height = Math.max(1, Math.round(height * ratio));
    surface.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  lanesElement.replaceChildren(...view.lanes.map((lane) => {
    const label = document.createElement("span");
    label.textContent = laneLabel(lane);
    label.style.left = laneX(lane) + "px";
    label.style.maxWidth = Math.max(10, laneWidth() - 4) + "px";
    label.title = laneName(lane);
    if (lane >= run.workers.length) label.className = "device";
    return label;
  }));
  draw();
}

function setZoom(step) {
  const place = ROW_HEIGHTS.indexOf(view.rowHeight) + step;
  if (place < 0 || place >= ROW_HEIGHTS.length) return;
  const middle = (scroller.scrollTop + scroller.clientHeight / 2) / view.rowHeight;
  view.rowHeight = ROW_HEIGHTS[place];
  resize();
  scroller.scrollTop = middle * view.rowHeight - scroller.clientHeight / 2;
  draw();
}

function bringIntoView(number, where) {
  const row = view.rowOf[number];
  if (row < 0) return;
  const top = row * view.rowHeight;
  const height = scroller.clientHeight;
  const outside = top < scroller.scrollTop + view.rowHeight ||
    top > scroller.scrollTop + height - 2 * view.rowHeight;
  if (where === "center" || outside) scroller.scrollTop = top - height / 2;
  draw();
}

// --- drawing ---

let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "text", "soft", "accent", "bad", "spine", "arrow", "storm",
    "storm-soft", "call", "reference", "autograd", "execution", "line", "gradients", "marks",
    "waves", "device"])
    colors[name] = style.getPropertyValue("--" + name).trim();
}

function colorOf(moment) {
  switch (moment.group) {
    case "faults": case "exceptions": return colors.bad;
    case "messages": case "calls": return colors.call;
    case "references": return colors.reference;
    case "autograd": return colors.autograd;
    case "devices": return colors.device;
    case "gradients": case "marks": case "waves": return colors[moment.group];
    default: return colors.execution;
  }
}

function draw() {
  const first = Math.max(0, Math.floor(scroller.scrollTop / view.rowHeight) - 1);
  const last = Math.min(view.shown.length,
    Math.ceil((scroller.scrollTop + scroller.clientHeight) / view.rowHeight) + 1);
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, scroller.clientWidth, scroller.clientHeight);
  drawPartitions(pen);
  drawSpines(pen, first, last);
  drawMessages(pen, first, last);
  drawDeviceOrders(pen, first, last);
  for (let row = first; row < last; ++row) drawMoment(pen, moments[view.shown[row]], row);
  drawRows(first, last);
  drawOverview();
}

// The row at which a moment is, or would be.
function placeInRows(number) {
  let low = 0;
  let high = view.shown.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (view.shown[middle] < number) low = middle + 1; else high = middle;
  }
  return low;
}

function drawPartitions(pen) {
  pen.fillStyle = colors["storm-soft"];
  let from = null;
  const shade = (to) => {
    const top = rowY(placeInRows(from)) - view.rowHeight / 2;
    const bottom = rowY(placeInRows(to)) - view.rowHeight / 2;
    const width = laneWidth() * view.lanes.length;
    pen.fillRect(TIME_WIDTH, top, width, Math.max(1, bottom - top));
  };
  for (const number of partitionMarks) {
    if (moments[number].kind === "partition") {
      if (from === null) from = number;
    } else if (from !== null) {
      shade(number);
      from = null;
    }
  }
  if (from !== null) shade(moments.length);
}
const partitionMarks = moments.filter((moment) =>
  moment.kind === "partition" || moment.kind === "partition_healed").map(({number}) => number);

function drawSpines(pen, first, last) {
  pen.lineWidth = 1.5;
  pen.strokeStyle = colors.spine;
  for (const lane of view.lanes) {
    const x = laneX(lane);
    let top = rowY(first);
    const bottom = rowY(last);
    pen.setLineDash(lane < run.workers.length ? [] : [1, 4]);
    for (const [from, to] of absences[workerOfLane(lane)]) {
      const gone = rowY(placeInRows(from));
      if (gone > top) strokeLine(pen, x, top, x, Math.min(gone, bottom));
      top = Math.max(top, rowY(placeInRows(to)));
    }
    if (top < bottom) strokeLine(pen, x, top, x, bottom);
  }
  pen.setLineDash([]);
}

// From the host to the stream that does what it gave: along the row, and down while that waits its
// turn. From a stream straight to whoever waited for it.
function drawDeviceOrders(pen, first, last) {
  const to = Math.min(view.shown.length, last + ROWS_AROUND);
  pen.strokeStyle = colors.device;
  pen.lineWidth = 1;
  for (let row = first; row < to; ++row) {
    const moment = moments[view.shown[row]];
    if (moment.group !== "devices" || !view.laneOf.has(laneOfMoment(moment))) continue;
    for (const cause of moment.causes) {
      const lane = laneOfMoment(moments[cause]);
      const from = view.rowOf[cause];
      if (lane === laneOfMoment(moment) || from < 0 || from > last) continue;
      if (moments[cause].group !== "devices" || !view.laneOf.has(lane)) continue;
      const [fromX, fromY] = [laneX(lane), rowY(from)];
      const [toX, toY] = [laneX(laneOfMoment(moment)), rowY(row)];
      pen.globalAlpha = view.past !== null && !view.past[moment.number] ? 0.25 : 0.8;
      if (moments[cause].kind === "device_given") {
        strokeLine(pen, fromX, fromY, toX, fromY);
        strokeLine(pen, toX, fromY, toX, toY);
        drawHead(pen, toX, fromY, toX, toY);
      } else {
        strokeLine(pen, fromX, fromY, toX, toY);
        drawHead(pen, fromX, fromY, toX, toY);
      }
    }
  }
  pen.globalAlpha = 1;
}

function strokeLine(pen, fromX, fromY, toX, toY) {
  pen.beginPath();
  pen.moveTo(fromX, fromY);
  pen.lineTo(toX, toY);
  pen.stroke();
}

function drawMessages(pen, first, last) {
  const from = Math.max(0, first - ROWS_AROUND);
  const to = Math.min(view.shown.length, last + ROWS_AROUND);
  const drawn = new Set();
  for (let row = from; row < to; ++row) {
    const number = moments[view.shown[row]].message;
    if (number < 0 || drawn.has(number)) continue;
    drawn.add(number);
    drawMessage(pen, messages[number], first, last);
  }
}

function drawMessage(pen, message, first, last) {
  const sending = moments[message.sent];
  if (!view.laneOf.has(sending.worker) || !view.laneOf.has(sending.peer)) return;
  if (sending.worker === sending.peer) return;
  const end = message.arrived >= 0 ? message.arrived : message.lostAt;
  const sentRow = placeInRows(message.sent);
  const endRow = end >= 0 ? placeInRows(end) : sentRow + 1;
  if (endRow < first || sentRow > last) return;
  const selected = view.selected !== null && moments[view.selected].message >= 0 &&
    messages[moments[view.selected].message] === message;
  const far = view.past !== null && !view.past[message.sent];
  const fromX = laneX(sending.worker);
  const toX = laneX(sending.peer);
  const fromY = rowY(sentRow);
  const toY = rowY(endRow);
  const lost = message.arrived < 0 && message.lostAt >= 0;
  const reach = message.arrived >= 0 ? 1 : 0.7;
  const endX = fromX + (toX - fromX) * reach;
  const endY = fromY + (toY - fromY) * reach;
  pen.globalAlpha = far && !selected ? 0.25 : 1;
  pen.lineWidth = selected ? 2.5 : groupOfMessage.has(sending.messageName) ? 1.8 : 1.2;
  pen.strokeStyle = selected ? colors.accent : lost ? colors.bad
    : groupOfMessage.has(sending.messageName) ? colorOf(sending) : colors.arrow;
  pen.setLineDash(message.arrived < 0 ? [4, 3] : []);
  strokeLine(pen, fromX, fromY, endX, endY);
  pen.setLineDash([]);
  if (message.arrived >= 0) drawHead(pen, fromX, fromY, endX, endY);
  if (lost) drawCross(pen, endX, endY, 4);
  pen.globalAlpha = 1;
}

function drawHead(pen, fromX, fromY, toX, toY) {
  const angle = Math.atan2(toY - fromY, toX - fromX);
  const size = Math.min(8, view.rowHeight / 2.4);
  const tipX = toX - 4 * Math.cos(angle);
  const tipY = toY - 4 * Math.sin(angle);
  pen.fillStyle = pen.strokeStyle;
  pen.beginPath();
  pen.moveTo(tipX, tipY);
  for (const turn of [2.7, -2.7])
    pen.lineTo(tipX + size * Math.cos(angle + turn), tipY + size * Math.sin(angle + turn));
  pen.fill();
}

function drawCross(pen, x, y, size) {
  pen.lineWidth = 2;
  pen.strokeStyle = colors.bad;
  strokeLine(pen, x - size, y - size, x + size, y + size);
  strokeLine(pen, x - size, y + size, x + size, y - size);
}

function drawMoment(pen, moment, row) {
  if (!view.laneOf.has(laneOfMoment(moment))) return;
  const x = laneX(laneOfMoment(moment));
  const y = rowY(row);
  const size = Math.max(1.5, Math.min(4.5, view.rowHeight / 4.5));
  if (view.past !== null && !view.past[moment.number]) pen.globalAlpha = 0.4;
  if (moment.kind === "connection_broken") {
    pen.strokeStyle = colors.bad;
    pen.lineWidth = 1.2;
    pen.setLineDash([2, 3]);
    if (view.laneOf.has(moment.peer)) {
      strokeLine(pen, x, y, laneX(moment.peer), y);
      pen.setLineDash([]);
      drawCross(pen, laneX(moment.peer), y, size);
    }
    pen.setLineDash([]);
    drawCross(pen, x, y, size);
  } else if (moment.kind === "crash") {
    drawSign(pen, x, y, "#");
  } else if (moment.kind === "restart") {
    drawSign(pen, x, y, "^");
  } else {
    pen.fillStyle = colorOf(moment);
    pen.beginPath();
    pen.arc(x, y, moment.number === run.failedAt ? size * 1.6 : size, 0, 2 * Math.PI);
    if (moment.number === run.failedAt) pen.fillStyle = colors.bad;
    pen.fill();
  }
  pen.globalAlpha = 1;
  if (moment.number === view.selected) {
    pen.strokeStyle = colors.accent;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, size + 4, 0, 2 * Math.PI);
    pen.stroke();
  }
}

function drawSign(pen, x, y, sign) {
  pen.fillStyle = colors.bad;
  pen.font = "bold " + Math.max(9, Math.min(18, view.rowHeight * 0.8)) + "px monospace";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(sign, x, y);
}

// --- rows of text ---

// By event: what it is marked with, and how the marks look.
const MARKS = new Map();
function addMark(number, text, style) {
  if (number < 0) return;
  const before = MARKS.get(number);
  MARKS.set(number, [before ? before[0] + " · " + text : text, style]);
}
if (run.critical) {
  addMark(run.critical.first, "A", "");
  addMark(run.critical.second, "B", "");
}
addMark(run.thrownAt, "THROWN HERE", "bad");
addMark(run.failedAt, "FAILS HERE", "bad");

function textElement(name, className, text) {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return element;
}

function rowElement(moment, row) {
  const element = document.createElement("div");
  element.className = "row";
  element.id = "event-" + moment.number;
  element.dataset.event = moment.number;
  element.setAttribute("role", "option");
  element.setAttribute("aria-selected", moment.number === view.selected);
  element.style.top = row * view.rowHeight + "px";
  element.style.height = view.rowHeight + "px";
  if (view.rowHeight < 16) element.style.fontSize = view.rowHeight - 2 + "px";
  if (moment.number === view.selected) element.classList.add("selected");
  if (moment.number === run.failedAt) element.classList.add("fails");
  if (view.past !== null && !view.past[moment.number]) element.classList.add("far");
  if (view.rowHeight < LEAST_ROW_WITH_TEXT) {
    element.title = placeOf(moment) + " " + moment.text;
    return element;
  }
  const time = textElement("time", "", timeOf(moment.when));
  time.style.width = TIME_WIDTH - 4 + "px";
  const space = textElement("span", "space", "");
  space.style.width = Math.max(14, laneWidth() * (view.lanes.length - 0.5) + 26) + "px";
  element.append(time, space);
  const mark = MARKS.get(moment.number);
  if (mark) element.append(textElement("span", "mark " + mark[1], mark[0]));
  const place = placeOf(moment);
  if (place !== "") element.append(textElement("b", "", place));
  element.append(textElement("span", "what " + (classOfGroup.get(moment.group) || "quiet"),
    moment.text));
  return element;
}

// Stands behind all rows, in place of the shutdown.
function foldElement() {
  const element = textElement("button", "fold", view.foldText);
  element.id = "fold";
  element.title = "Show it";
  element.style.top = view.shown.length * view.rowHeight + "px";
  element.style.height = view.rowHeight + "px";
  element.style.left = TIME_WIDTH + "px";
  return element;
}

function drawRows(first, last) {
  const elements = [];
  for (let row = first; row < last; ++row)
    elements.push(rowElement(moments[view.shown[row]], row));
  if (view.foldText !== "" && last === view.shown.length) elements.push(foldElement());
  rowsElement.replaceChildren(...elements);
  const selected = view.selected !== null && document.getElementById("event-" + view.selected);
  if (selected) scroller.setAttribute("aria-activedescendant", selected.id);
  else scroller.removeAttribute("aria-activedescendant");
}

// --- the whole run at one glance ---

// Of a kind of fault that a run is full of, none is a landmark.
const RARE_FAULTS = (() => {
  const counts = new Map();
  for (const {group, kind} of moments)
    if (group === "faults") counts.set(kind, (counts.get(kind) || 0) + 1);
  return new Set([...counts].filter(([, count]) => count <= 100).map(([kind]) => kind));
})();

function drawOverview() {
  const pen = overview.getContext("2d");
  const width = overview.clientWidth;
  const height = overview.clientHeight;
  pen.clearRect(0, 0, width, height);
  const rows = Math.max(1, view.shown.length);
  const dash = (row, color, thick) => {
    pen.fillStyle = color;
    pen.fillRect(3, row / rows * height - thick / 2, width - 6, thick);
  };
  view.shown.forEach((number, row) => {
    if (RARE_FAULTS.has(moments[number].kind)) dash(row, colors.storm, 1.5);
  });
  if (view.selected !== null && view.rowOf[view.selected] >= 0)
    dash(view.rowOf[view.selected], colors.accent, 3);
  for (const [number, [, style]] of MARKS)
    if (view.rowOf[number] >= 0)
      dash(view.rowOf[number], style === "bad" ? colors.bad : colors.accent, 3);
  pen.globalAlpha = 0.18;
  pen.fillStyle = colors.soft;
  const all = rows * view.rowHeight;
  pen.fillRect(0, scroller.scrollTop / all * height, width,
    Math.max(4, scroller.clientHeight / all * height));
  pen.globalAlpha = 1;
}
