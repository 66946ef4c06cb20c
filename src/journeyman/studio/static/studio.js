// The page: one session, drawn anew from what the server sends.

import { download, get, listen, place, post } from "./api.js";
import {
  drawCurve, drawGrid, drawPolicy, drawRanges, drawRoad, drawVisits, el, number, percent, roadWords, swatch, table,
} from "./drawing.js";
import { Editor } from "./editor.js";

const $ = (id) => document.getElementById(id);
const FILES = {
  "demonstrations.csv": "Demonstrations (CSV)", "policy.csv": "Policy (CSV)", "policy.npz": "Policy (NPZ)",
  "certificate.json": "Certificate", "run.zip": "Run directory (ZIP)", "report.html": "Report",
};
const SYMBOLS = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };
const SUBTITLE = $("subtitle").textContent;

let state = null;      // of the session, as the server last sent it
let position = null;   // of the episode under way
let listening = null;  // aborts the stream of events
let draw = 0;          // of replays
let playing = 0;

// Messages

const announce = (words) => { $("live").textContent = words; };
function complain(fault) {
  $("fault").textContent = fault.message ?? String(fault);
  $("error").hidden = false;
}
const calm = () => { $("error").hidden = true; };
$("dismiss").addEventListener("click", calm);
addEventListener("error", (event) => complain(`This page met an error: ${event.message}. Load it again; nothing that was recorded is lost.`));

// Keys come faster than answers: everything that changes the session waits for what was before it.
let queue = Promise.resolve();
function inTurn(work) {
  queue = queue.then(async () => {
    try { await work(); calm(); } catch (fault) {
      if (fault.status !== 409) { complain(fault); return; }
      announce("Another tab was there first; this is how it stands now.");
      try { show(await get(`sessions/${state.name}`)); } catch (second) { complain(second); }
    }
  });
  return queue;
}
async function attempt(work) {
  try { await work(); calm(); } catch (fault) { complain(fault); }
}
const own = (what) => `sessions/${state.name}/${what}`;
const moment = () => ({ attempt: position.attempt, step: position.steps });

// Fill a node, unless it already shows this: what has the focus, or is being read, stays in place.
function fill(node, content, make) {
  const key = JSON.stringify(content);
  if (node.shown === key) return;
  node.shown = key;
  node.replaceChildren(...[make()].flat().filter((one) => one !== null));
}
function enable(button, enabled) {  // a disabled button would lose the focus
  if (enabled) button.removeAttribute("aria-disabled"); else button.setAttribute("aria-disabled", "true");
}

// Choosing a world

const editor = new Editor($("editor"), $("brushes"), announce);
editor.onbrush = () => {
  $("region-field").hidden = !editor.namesRegion;
  $("region").value = editor.brushName;
};
editor.onbrush();
$("size").addEventListener("change", () => editor.resize(Number($("size").value)));
$("region").addEventListener("input", () => editor.rename($("region").value));
$("clear").addEventListener("click", () => editor.clear());
$("example").addEventListener("click", () => editor.fill());

const kind = () => document.querySelector("input[name=kind]:checked").value;
function showKind() {
  for (const one of document.querySelectorAll("#choose .panel")) one.hidden = one.dataset.kind !== kind();
  const missing = { gymnasium: !$("toy").options.length, file: !$("file-world").options.length, open: true };
  $("begin").hidden = missing[kind()] ?? false;
  $("toy-map").disabled = $("toy").value !== "FrozenLake-v1";
}
for (const one of document.querySelectorAll("input[name=kind]")) one.addEventListener("change", showKind);
$("toy").addEventListener("change", showKind);

function choice() {
  if (kind() === "grid") {
    return { ...editor.choice(), slip: Number($("slip").value), discount: Number($("discount").value), most_steps: Number($("limit").value) };
  }
  if (kind() === "gymnasium") {
    const name = $("toy").value;
    const options = name === "FrozenLake-v1" ? { map_name: $("toy-map").value } : {};
    return { kind: "gymnasium", name, options, discount: Number($("toy-discount").value) };
  }
  if (kind() === "file") {
    const options = { discount: $("file-discount").value.trim(), initial: $("file-initial").value.trim() };
    return { kind: "file", world: $("file-world").value, costs: $("file-costs").value.trim(), options };
  }
  return { kind: "driving" };
}

async function showLibrary() {
  const found = await get("library");
  $("toy").replaceChildren(...found.gymnasium.map((one) => el("option", { value: one.name }, `${one.title} (${one.name})`)));
  $("toy-missing").hidden = found.gymnasium.length > 0;
  $("toy-fields").hidden = !found.gymnasium.length;
  $("file-world").replaceChildren(...found.files.map((one) => el("option", { value: one }, one)));
  $("file-missing").hidden = found.files.length > 0;
  $("file-fields").hidden = !found.files.length;
  const sets = [...found.files, "state-indicator", "coordinates", "macro-cells:4", "time"];
  $("file-list").replaceChildren(...sets.map((one) => el("option", { value: one })));
  const entries = [
    ...found.sessions.map((one) => [`${one.title}, ${new Date(1000 * one.changed).toLocaleString()}`, one.name, () => open(one.name)]),
    ...found.runs.map((one) => [`Run ${one}`, one, async () => begun(await post("runs", { run: one }))]),
  ];
  $("saved").replaceChildren(...entries.map(([words, name, act]) => el("li", {},
    el("button", { type: "button", "data-name": name, onclick: () => inTurn(act) }, words), el("small", {}, name))));
  if (!entries.length) $("saved").append(el("li", {}, "There is none yet in this directory."));
  showKind();
}

$("begin").addEventListener("click", () => inTurn(async () => {
  $("begin").textContent = "Building the world…";
  try { begun(await post("sessions", { world: choice() })); } finally { $("begin").textContent = "Begin to demonstrate"; }
}));
$("another").addEventListener("click", () => { place.session = ""; });

const open = async (name) => begun(await get(`sessions/${name}`));

async function leave() {
  listening?.abort();
  state = null;
  for (const id of ["session", "another"]) $(id).hidden = true;
  $("choose").hidden = false;
  $("connection").textContent = "";
  $("subtitle").textContent = SUBTITLE;
  document.title = "journeyman studio";
  await attempt(showLibrary);
  document.querySelector("input[name=kind]:checked").focus();
}

function begun(found) {
  listening?.abort();
  listening = new AbortController();
  state = null;
  for (const id of ["replay-boards", "pad", "legend"]) { $(id).shown = null; $(id).replaceChildren(); }
  for (const id of ["audited", "progress"]) $(id).textContent = "";
  $("choose").hidden = true;
  for (const id of ["session", "another"]) $(id).hidden = false;
  show(found);
  place.session = found.name;
  listen(found.name, listening.signal, message, connection);
  $("board").focus();
  scrollTo(0, 0);
}

// The address names the session: the browser's back and forward lead from one to another.
place.onchange = () => {
  if (place.session === (state?.name ?? "")) return;
  inTurn(() => (place.session ? open(place.session) : leave()));
};

function connection(there, fault) {
  $("connection").textContent = there ? "connected" : "not connected, trying again…";
  $("connection").className = there ? "pill good" : "pill bad";
  if (there) { if ($("error").lost) calm(); $("error").lost = false; return; }
  if (!fault) return;
  $("error").lost = fault.status === 0;
  complain(fault.status === 401 ? "The studio was started anew: open the address that it printed. Nothing that was recorded is lost." : fault);
}

function message(content) {
  if (!state) return;
  if (content.state && content.state.version >= state.version) show(content.state);
  if (content.position && content.position.version > position.version) {
    position = content.position;
    state.version = position.version;
    showBoard();
  }
  if (content.renewal) $("renewal").textContent = `Renewing: ${content.renewal.task}, ${content.renewal.seconds} s`;
  if (content.progress) $("progress").textContent = progressWords(content.progress);
  if (content.solved) $("progress").textContent = content.solved;
}

function progressWords(one) {
  const steps = one.iteration ? `, iteration ${one.iteration.toLocaleString("en")}` : "";
  const value = one.objective === null ? "" : `: ${number(one.objective)}`;
  const low = one.lower_bound === null ? "" : `; no policy is below ${number(one.lower_bound)}`;
  return `${one.task}, ${one.seconds} s${steps}${value}${low}`;
}

// Demonstrating

const actionName = (action) => state.board.kind === "road" && state.board.states[position.state] === null
  ? state.board.speeds[action] : state.actions[action];

function act(action) {
  inTurn(async () => {
    if (position.ended) { announce("The episode has ended. Enter keeps it, Backspace undoes."); return; }
    const name = actionName(action);
    if (!position.offered.includes(action)) {
      $("what").textContent = `${name} is not possible here. ${words()}`;
      announce(`${name} is not possible here.`);
      return;
    }
    moved(await post(own("step"), { ...moment(), action }), name);
  });
}
const undo = () => inTurn(async () => { if (position.steps) moved(await post(own("undo"), moment()), "Undone"); });
const restart = (start = null) => inTurn(async () => moved(await post(own("restart"), start === null ? {} : { start }), "Restarted"));
const finish = () => inTurn(async () => {
  if (!position.steps) { announce("Take a step first."); return; }
  const ended = position.ended;
  show(await post(own("finish"), moment()));
  announce(`Episode kept, ${ended === "terminated" ? "terminated" : "truncated"}. The next one starts in ${position.name}.`);
});

function moved(found, word) {
  if (found.version < position.version) return;
  position = found;
  state.version = found.version;
  showBoard();
  announce(`${word}: ${$("what").textContent}`);
}

// Keys act on the board, on the buttons around it, and where nothing has the focus.
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || !state) return;
  const bare = event.target === document.body || event.target === $("board");
  if (!bare && !event.target.closest("#board-section button")) return;
  const action = state.board.actions.findIndex((one) => one.key === event.key);
  if (action >= 0) act(action);
  else if (event.key === "Backspace") undo();
  else if (event.key === "Enter" && bare) finish();
  else if (event.key === "r" || event.key === "R") restart();
  else return;
  event.preventDefault();
});
$("undo").addEventListener("click", undo);
$("finish").addEventListener("click", finish);
$("restart").addEventListener("click", () => restart());
$("advised").addEventListener("click", () => { restart(state.view.next_start); $("board").focus(); });

function words() {
  const { last, steps, ended } = position;
  const over = ended === "terminated" && position.name === "the end";
  let text = steps ? `Step ${steps}.` : position.chosen ? "Advised start." : "Start.";
  if (last?.slipped) text += state.board.kind === "grid" ? " You slipped: the dashed line shows where you aimed." : " You slipped: that was not the likeliest outcome.";
  if (state.board.kind === "road") text += " " + roadWords(state.board, state.board.states[position.state]);
  else if (!over) text += ` You are in ${position.name}.`;
  if (ended === "terminated") text += " The episode has terminated: Enter keeps it.";
  if (ended === "limit") text += ` The time limit of ${state.world.most_steps} steps truncates the episode: Enter keeps it.`;
  return text;
}

function picture(run, who = "expert", label = "") {
  const board = state.board;
  if (board.kind === "grid") {
    return drawGrid(board, { label: label || `Map; you are in ${position.name}`, who, ...run });
  }
  return drawRoad(board, board.states[run.state], who);
}

function showBoard() {
  const { board, view } = state;
  const last = position.last;
  const advised = view?.next_start ?? null;
  if (board.kind === "list") {
    const trail = position.trail.map(nameOf).join(" → ");
    $("board").replaceChildren(el("p", { class: "here" }, position.name), el("p", { class: "note" }, `So far: ${trail}`));
  } else {
    $("board").replaceChildren(picture({
      state: position.state, trail: position.trail, at: board.kind === "grid" ? last?.shown ?? board.place[position.state] : null, last,
      advised: advised === null || !board.map ? null : board.place[advised],
    }));
  }
  $("what").textContent = words();
  $("what").className = last?.slipped ? "slipped" : position.ended ? "over" : "";
  $("position").textContent = `Episode ${state.next_number}, ${position.steps} of at most ${state.world.most_steps} steps`;
  showPad();
  enable($("finish"), position.steps);
  enable($("undo"), position.steps);
}

function showPad() {
  const { board } = state;
  if (!$("pad").childElementCount) {
    $("pad").replaceChildren(...board.actions.map((one, action) => el("button", {
      type: "button", class: one.name.replace(/\W/g, "-"), onclick: () => act(action),
    }, (SYMBOLS[one.key] ?? "") + " ", el("span"), one.key.length === 1 ? [" ", el("kbd", {}, one.key)] : null)));
    $("pad").classList.toggle("cross", board.kind === "grid" && board.actions.some((one) => one.key === "ArrowUp"));
  }
  [...$("pad").children].forEach((button, action) => {
    button.querySelector("span").textContent = actionName(action);
    enable(button, !position.ended && position.offered.includes(action));
  });
}

// What is certified

function markOf(main) {
  if (!main.valid) return ["bad", "Contradicted"];
  if (main.strength === "vacuous") return ["warn", "Says nothing yet"];
  if (main.strength === "weak") return ["warn", "Weak"];
  if (main.uniform !== undefined && main.bound > main.uniform / 2) return ["warn", "Says little"];
  return ["good", "Certified"];
}

function showClaim() {
  const { view, settings } = state;
  const uncounted = state.episodes.filter((one) => !one.counted).length;
  fill($("claim"), [view, state.problem, uncounted, state.episodes.length, state.current], () => {
    const problem = state.problem ? el("p", { class: "bad" }, state.problem) : null;
    if (!view) {
      const why = state.renewing ? "The first certificate is being made."
        : uncounted ? "None of these episodes counts here: starts that were chosen need a premise about your actions."
          : "Finish a first episode, and the certificate appears here.";
      return [el("p", {}, why), problem];
    }
    const main = view.regret ?? view.gap;
    const [tone, mark] = markOf(main);
    const note = (text) => el("p", { class: "note" }, text);
    const sure = view.settings.premise === "none" ? `With probability ${number(1 - view.failure_probability)} the` : "The";
    const about = view.regret
      ? "more than the best policy there is, under the cost that you have in mind, whichever that is"
      : "more than you, under every cost that is possible";
    const lines = [el("p", { class: "mark " + tone }, mark)];
    if (main.valid) {
      lines.push(
        el("p", { class: "bound" }, el("b", { id: "share" }, percent(main.share)), " of the most that is possible"),
        el("p", {}, `${sure} apprentice costs at most ${number(main.bound)} ${about}. The most that is possible is ${number(main.possible)}.`),
      );
    } else lines.push(...contradiction(view));
    if (view.regret) {
      if (main.valid) {
        lines.push(note(`For comparison: somebody who acts at random could cost up to ${number(main.uniform)} more (${percent(main.uniform / main.possible)}).`
          + (main.uniform < 0.05 * main.possible ? " So little is left because hardly any cost that tells policies apart fits what you did." : "")));
      }
      lines.push(note("Rests on what you declare: on average an action costs at most "
        + `${number(view.settings.regret_per_step)} more than the best one would.`
        + (view.gap.valid ? ` Whatever you had in mind: at most ${number(view.gap.bound)} (${percent(view.gap.share)}) more than you.` : "")));
    } else if (settings.premise === "none") {
      lines.push(note("Each number holds with its own probability. Decide beforehand how many episodes you record: if you stop as soon as a number pleases you, its probability is not the one stated."));
    }
    if (view.note) lines.push(note(view.note));
    if (uncounted) lines.push(note(`${uncounted} of ${state.episodes.length} episodes began in a chosen state and do not count here.`));
    return [...lines, problem];
  });
  showActivity();
  fill($("chart"), [state.curve, state.episodes.length], () => {
    if (!view || !state.curve.length) return null;
    const listed = state.curve.map((one) => `${one.episodes}: ${percent(one.share)}`).join(", ");
    return el("figure", {}, drawCurve(state.curve, state.episodes.length, `The bound by number of episodes. ${listed}.`),
      el("figcaption", {}, "The bound, as a share of the most that is possible, by the number of episodes. Above the dashed line it is weak."));
  });
  fill($("more"), view, () => (view ? [
    el("p", {}, view.summary),
    table(["Part of the bound", "Amount"], view.terms.map((one) => [one.name, number(one.value)])),
    table(["Premise", "Status", "Detail"], view.premises.map((one) => [one.name, one.status, one.detail])),
    el("ul", {}, view.advice.filter((one) => one).map((one) => el("li", {}, one))),
    el("p", { class: "note" }, `Found by ${view.solver}` + (view.seconds ? `, in ${number(view.seconds)} s.` : ".")),
  ] : null));
}

// Which recorded steps speak against what is declared.
function contradiction(view) {
  const steps = view.contradiction.map(([episode, step, at, action]) => `episode ${episode}, step ${step}: ${state.actions[action]} in ${nameOf(at)}`);
  const failed = view.premises.find((one) => one.status === "failed");
  if (!steps.length) return [el("p", {}, `What you recorded contradicts what you declare: ${failed?.detail ?? "a premise failed"}.`)];
  return [
    el("p", {}, "What you recorded contradicts what you declare: no cost under which policies differ fits these steps together. Allow for more mistakes, or drop an episode with a typing error."),
    el("ul", {}, steps.map((one) => el("li", {}, one))),
  ];
}

// Whether the numbers are those of what is recorded, and what they are in one line.
function showActivity() {
  const { view } = state;
  const working = state.renewing && (!state.current || !view?.ranges);
  if ($("renewing").hidden && working) $("renewal").textContent = "Renewing…";
  $("renewing").hidden = !working;
  $("paused").hidden = !state.paused;
  let brief = "";
  if (view && state.current) {
    const main = view.regret ?? view.gap;
    brief = `${markOf(main)[1]}${main.valid ? `: ${percent(main.share)} of the most that is possible` : ""}, after ${state.episodes.length} episode${state.episodes.length > 1 ? "s" : ""}.`;
    if ($("brief").textContent && brief !== $("brief").textContent) announce(brief);
  }
  $("brief").textContent = state.renewing && !state.current ? "Renewing the certificate…" : brief;
}
$("halt").addEventListener("click", () => attempt(() => post(own("stop"))));
$("resume").addEventListener("click", () => inTurn(async () => show(await post(own("renew")))));

for (const one of document.querySelectorAll("input[name=premise]")) one.addEventListener("change", declare);
for (const id of ["regret", "cost-class", "delta"]) $(id).addEventListener("change", declare);
function declare() {
  const settings = {
    premise: document.querySelector("input[name=premise]:checked").value, regret_per_step: Number($("regret").value),
    cost_class: $("cost-class").value, failure_probability: Number($("delta").value),
  };
  inTurn(async () => {
    try { show(await post(own("settings"), settings)); } finally { showSettings(); }
  });
}

function showSettings() {
  const now = state.settings;
  for (const one of document.querySelectorAll("input[name=premise]")) {
    one.checked = one.value === now.premise;
    one.disabled = state.world.estimated && one.value !== "none";
  }
  $("regret-field").hidden = now.premise !== "rational";
  for (const [id, value] of [["regret", now.regret_per_step], ["cost-class", now.cost_class], ["delta", now.failure_probability]]) {
    if (document.activeElement !== $(id)) $(id).value = value;
  }
}

// Episodes

function showEpisodes() {
  fill($("episodes"), state.episodes, () => {
    if (!state.episodes.length) return el("p", { class: "note" }, "None yet.");
    const rows = state.episodes.slice(-200).reverse().map((one) => [
      String(one.number), (state.board.kind === "road" ? nameOf(one.start) : one.start_name) + (one.chosen ? " (chosen)" : ""), one.steps + (one.slips ? ` (${one.slips} slip${one.slips > 1 ? "s" : ""})` : ""),
      one.terminated ? "terminated" : one.limit ? "truncated: time limit" : "truncated by you",
      el("button", { type: "button", "aria-label": `Drop episode ${one.number}`, onclick: () => drop(one.number) }, "Drop"),
    ]);
    return table(["No.", "Start", "Steps", "End", ""], rows);
  });
}
const drop = (episode) => inTurn(async () => {
  show(await post(own("drop"), { episode }));
  announce(`Episode ${episode} is dropped.`);
  $("board").focus();
});

// The apprentice

function showApprentice() {
  const { view, board, episodes } = state;
  $("apprentice").hidden = !view;
  if (!view) return;
  fill($("maps"), [view.policy, view.visits], () => {
    if (!board.map) return policyTable(view);
    const most = Math.max(...view.visits.expert, ...view.visits.apprentice, 1e-9);
    const figure = (drawn, caption) => el("figure", {}, drawn, el("figcaption", {}, caption));
    return [
      figure(drawPolicy(board, view, state.actions, "The policy: arrows by probability"), "The apprentice's policy: the fainter an arrow, the less likely the move."),
      figure(drawVisits(board, view.states, view.visits.expert, "expert", most, "Where you spend your time"), "Where you spend your time."),
      figure(drawVisits(board, view.states, view.visits.apprentice, "apprentice", most, "Where the apprentice does"), "Where the apprentice does."),
    ];
  });
  const { ranges } = view;
  fill($("ranges"), [ranges, state.renewing, view.settings.premise], () => (ranges
    ? el("figure", {}, drawRanges(ranges, ranges.map((one) => `${one.name} ${number(one.low)} to ${number(one.high)}`).join("; ")),
      el("figcaption", {}, "Weights that your actions leave open, in units of what acting at random costs more than the best policy. Right of the line: it costs; left: it is worth having."))
    : el("p", { class: "note" }, view.settings.premise !== "rational" ? "Declare that your actions are nearly the best ones to see what they show."
      : state.renewing ? "Being found…" : "Not known here: too large to find at once, or contradicted.")));
  fill($("costs"), view.costs, () => table(["", "You", "Apprentice"], view.costs.map((one) => [one.name, number(one.expert), number(one.apprentice)])));
  fill($("replay-episode"), episodes.map((one) => one.number), () => episodes.slice(-200).reverse().map((one) => el("option", { value: one.number }, String(one.number))));
}

function policyTable(view) {
  const row = new Map(view.states.map((one, at) => [one, at]));
  const rows = view.most_visited.filter((one) => row.has(one)).slice(0, 40).map((one) => {
    const at = row.get(one);
    const best = [...view.policy[at]].sort((a, b) => b[1] - a[1])[0];
    return [nameOf(one), state.actions[best[0]], percent(best[1]), percent(view.visits.expert[at]), percent(view.visits.apprentice[at])];
  });
  const shown = table(["State", "Likeliest action", "Probability", "Your time", "Apprentice's time"], rows, "The policy, where most time is spent");
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The policy" }, shown);
}

function nameOf(at) {
  const { board } = state;
  if (board.names) return board.names[at];
  if (board.kind === "road") return board.states[at] === null ? "choice of a speed" : roadWords(board, board.states[at]);
  if (board.kind === "grid" && board.place[at] >= 0) return `row ${Math.floor(board.place[at] / board.columns) + 1}, column ${board.place[at] % board.columns + 1}`;
  return `state ${at}`;
}

$("replay").addEventListener("click", () => attempt(async () => {
  draw += 1;
  play(await post(own("replay"), { episode: Number($("replay-episode").value), draw }));
}));

// The last episode and the apprentice's from the same start, as a picture until somebody plays it.
async function showLast() {
  const { name, view } = state, last = state.episodes.at(-1);
  if (!last || state.renewing || !state.current || $("replay-boards").shown === view.key) return;
  $("replay-boards").shown = view.key;
  try {
    const found = await post(`sessions/${name}/replay`, { episode: last.number, draw });
    if (state?.name !== name || state.view?.key !== view.key) return;
    playing += 1;
    $("replay-episode").value = String(last.number);
    $("replay-boards").replaceChildren(frame("expert", found.expert, Infinity), frame("apprentice", found.apprentice, Infinity));
  } catch { /* the button says what is wrong */ }
}

function frame(who, run, time) {
  const { board } = state;
  const at = Math.min(time, run.states.length - 1);
  const title = who === "expert" ? "You" : "The apprentice";
  const ended = at === run.states.length - 1 ? `${run.terminated ? "terminated" : "truncated"} after ${at} step${at === 1 ? "" : "s"}` : `step ${at}`;
  let drawn = el("p", {}, run.states.slice(Math.max(0, at - 8), at + 1).map(nameOf).join(" → "));
  if (board.kind !== "list") {
    const trail = board.kind === "grid" ? run.states.slice(0, at + 1).map((one) => board.place[one]).filter((one) => one >= 0) : [];
    drawn = picture({ state: run.states[at], trail, at: trail.at(-1) ?? null }, who, `${title}: ${ended}`);
  }
  return el("figure", {}, drawn, el("figcaption", {}, `${title}: ${ended}`));
}

function play(found) {
  const mine = ++playing;
  const length = Math.max(found.expert.states.length, found.apprentice.states.length);
  const tick = (time) => {
    if (mine !== playing || !state) return;
    $("replay-boards").replaceChildren(frame("expert", found.expert, time), frame("apprentice", found.apprentice, time));
    if (time < length - 1) setTimeout(() => tick(time + 1), 180);
    else announce([...$("replay-boards").querySelectorAll("figcaption")].map((one) => one.textContent).join(". "));
  };
  tick(matchMedia("(prefers-reduced-motion: reduce)").matches ? length - 1 : 0);
}

$("solve").addEventListener("click", () => inTurn(async () => {
  if (state.solving) return;
  const method = { name: $("method").value };
  if (method.name === "sgd-al") method.steps = Number($("steps").value);
  $("progress").textContent = "Solving…";
  show(await post(own("solve"), resumable() ?? method));
}));
$("stop").addEventListener("click", () => attempt(() => post(own("stop"))));
$("method").addEventListener("change", showSolve);
const resumable = () => (!state.solving && state.method?.solver.name === $("method").value ? state.method.solver : null);
function showSolve() {
  const again = resumable();
  $("solve").textContent = again ? (state.method.continues ? "Resume" : "Start again") : "Solve";
  enable($("solve"), !state.solving);
  enable($("stop"), state.solving);
  $("steps").disabled = $("method").value !== "sgd-al";
  if (state.solving || again) $("methods").open = true;
  if (again) $("progress").textContent = state.method.continues ? "Stopped; it goes on from where it was." : "Stopped; this method starts again.";
}

// Files

$("files").append(...Object.entries(FILES).map(([file, title]) => el("button", {
  type: "button", "data-file": file,
  onclick: () => attempt(async () => announce(`${await download(own(`files/${file}`))} is downloaded.`)),
}, title)));
$("audit").addEventListener("click", () => attempt(async () => {
  $("audited").textContent = "Auditing…";
  $("audited").className = "";
  try {
    const found = await post(own("audit"));
    $("audited").textContent = found.text;
    $("audited").className = found.passed ? "good" : "bad";
  } catch (fault) { $("audited").textContent = ""; throw fault; }
}));

function show(found) {
  if (state?.name === found.name && found.order < state.order) return;  // an answer that a later event has overtaken
  const changed = state?.view?.key !== found.view?.key;
  state = { board: state?.board, ...found };  // the board never changes, and comes once
  position = found.position;
  document.title = `${found.title} · journeyman studio`;
  $("subtitle").textContent = `${found.title}: ${found.world.states.toLocaleString("en")} states, discount ${found.world.discount}`;
  $("where").textContent = found.saved
    ? `Everything is kept in the directory ${found.name}; journeyman audit ${found.name} checks it without this page.`
    : "Nothing is written before your first step.";
  const { board } = state;
  fill($("legend"), board.legend, () => board.legend.map((one) => el("li", {}, swatch(one.look, one.mark), one.name)));
  const advised = found.view?.next_start ?? null;
  $("advised").hidden = advised === null || found.settings.premise !== "rational";
  $("advised").textContent = `Start where it helps most${board.map ? " (dashed circle)" : ""}`;
  for (const one of $("files").children) one.disabled = one.dataset.file === "demonstrations.csv" ? !found.episodes.length : !found.view;
  $("audit").disabled = !found.view;
  if (changed) $("audited").textContent = "";
  showBoard(); showSettings(); showClaim(); showEpisodes(); showApprentice(); showSolve();
  if (found.view) showLast();
}

attempt(async () => {
  if (!place.token) throw new Error("The address lacks its token: open the one that journeyman studio printed.");
  await showLibrary();
  if (place.session) await open(place.session);
});
