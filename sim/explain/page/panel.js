// Everything about the selected event.

const panel = document.getElementById("panel");

function addFact(list, name, value, code) {
  if (value === "" || value === null) return;
  list.append(textElement("dt", "", name));
  const fact = document.createElement("dd");
  fact.append(code ? textElement("code", "", value) : value);
  list.append(fact);
}

function addJumps(title, numbers) {
  if (numbers.length === 0) return;
  const shownMost = 12;
  panel.append(textElement("h3", "", title));
  const list = document.createElement("ol");
  for (const number of numbers.slice(0, shownMost)) {
    const moment = moments[number];
    const item = document.createElement("li");
    const jump = textElement("button", "", timeOf(moment.when) + "  " + placeOf(moment) + " " +
      moment.text);
    jump.dataset.jump = number;
    jump.addEventListener("click", () => select(number));
    item.append(jump);
    list.append(item);
  }
  panel.append(list);
  if (numbers.length > shownMost)
    panel.append(textElement("p", "quiet", "and " + (numbers.length - shownMost) + " more"));
}

// Where in the program's source, innermost first.
function addPlaces(moment) {
  if (moment.places.length === 0) return;
  panel.append(textElement("h3", "", moment.kind === "thrown" ? "Thrown in" : "Called from"));
  const list = document.createElement("ul");
  list.className = "places";
  for (const place of moment.places) {
    const item = document.createElement("li");
    item.append(textElement("code", "", place));
    list.append(item);
  }
  panel.append(list);
}

function fateOf(message) {
  if (message.arrived >= 0) {
    const travelled = moments[message.arrived].when - moments[message.sent].when;
    return "arrived after " + (travelled / 1e6).toFixed(3) + " ms";
  }
  return message.lostAt >= 0 ? "lost with its connection" : "on its way when the run ended";
}

function addTables(moment) {
  const tables = moment.worker === NOBODY ? "" : tablesAt(moment);
  if (tables === "" || moment.kind === "connection_broken") return;
  panel.append(textElement("h3", "", "What " + placeOf(moment) + " holds after it"));
  const table = document.createElement("table");
  for (const entry of tables.split(", ")) {
    const space = entry.lastIndexOf(" ");
    const row = table.insertRow();
    row.insertCell().textContent = space < 0 ? entry : entry.slice(0, space);
    row.insertCell().textContent = space < 0 ? "" : entry.slice(space + 1);
  }
  panel.append(table);
}

function showPanel() {
  panel.replaceChildren();
  if (view.selected === null) {
    panel.append(textElement("h2", "", "No event is selected"),
      textElement("p", "quiet", "Click an event, or press ↓. The key ? lists all keys."));
    return;
  }
  const moment = moments[view.selected];
  panel.append(textElement("h2", "", (placeOf(moment) + " " + moment.text).trim()));
  const facts = document.createElement("dl");
  addFact(facts, "event", moment.number + 1 + " of " + moments.length);
  addFact(facts, "time", timeOf(moment.when) + " s");
  addFact(facts, "kind", moment.kind, true);
  addFact(facts, "causal id", moment.id, true);
  if (moment.message >= 0) {
    const message = messages[moment.message];
    addFact(facts, "from", run.workers[moments[message.sent].worker]);
    addFact(facts, "to", run.workers[moments[message.sent].peer]);
    if (moment.frame > 0) addFact(facts, "frame", "number " + moment.frame +
      (moment.attempt > 0 ? ", attempt " + (moment.attempt + 1) : ""));
    if (moment.bytes > 0) addFact(facts, "size", moment.bytes + " bytes");
    addFact(facts, "fate", fateOf(message));
  }
  addFact(facts, moment.kind === "thrown" ? "in" : "says", moment.detail, true);
  panel.append(facts);
  if (moment.number === run.failedAt)
    panel.append(textElement("h3", "fault", "Here it fails: " + run.failure));
  addPlaces(moment);
  addPass(moment);
  if (moment.message >= 0) {
    const {sent, arrived} = messages[moment.message];
    const other = moment.number === sent ? arrived : sent;
    if (other >= 0) addJumps("The message's other end", [other]);
  }
  addJumps("Causes", moment.causes);
  addJumps("Leads to", effects[moment.number]);
  addTables(moment);
}
