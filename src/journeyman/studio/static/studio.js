// The page: one session, drawn anew from what the server says.

import { download, get, listen, place, post } from "./api.js";
import { drawCurve, drawGrid, drawPolicy, drawRanges, drawRoad, drawVisits, el, number, percent, roadWords, table } from "./drawing.js";
import { Editor } from "./editor.js";

const $ = (id) => document.getElementById(id);
const FILES = {
  "demonstrations.csv": "Demonstrations (CSV)", "policy.csv": "Policy (CSV)", "policy.npz": "Policy (NPZ)",
  "certificate.json": "Certificate", "run.zip": "Run directory (ZIP)", "report.html": "Report",
};
let state = null;      // of the session, as the server last said
let position = null;   // of the episode under way
let listening = null;
let draw = 0;          // of replays
let playing = 0;
let library = null;

// Saying things

const announce = (words) => { $("live").textContent = words; };
function complain(fault) {
  $("error").textContent = fault.message ?? String(fault);
  $("error").hidden = false;
}
const calm = () => { $("error").hidden = true; };

// Keys come faster than answers: everything that changes the session waits for what was before it.
let queue = Promise.resolve();
function inTurn(work) {
  queue = queue.then(async () => {
    try { await work(); calm(); } catch (fault) {
      if (fault.status === 409) { announce("Another tab was there first; this is how it stands now."); await refresh(); } else complain(fault);
    }
  });
  return queue;
}
const own = (what) => `sessions/${state.name}/${what}`;
const moment = () => ({ attempt: position.attempt, step: position.steps });
const refresh = async () => show(await get(`sessions/${state.name}`));

// Choosing a world

const editor = new Editor($("editor"), $("brushes"), announce);
$("size").addEventListener("change", () => editor.resize(Number($("size").value)));
const kind = () => document.querySelector("input[name=kind]:checked").value;
function showKind() {
  for (const one of document.querySelectorAll("#choose .panel")) one.hidden = one.dataset.kind !== kind();
  $("begin").hidden = kind() === "open";
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
    return { kind: "file", world: $("file-world").value, costs: $("file-costs").value.trim(), options: { discount: $("file-discount").value.trim() } };
  }
  return { kind: "driving" };
}

async function showLibrary() {
  library = await get("library");
  $("toy").replaceChildren(...library.gymnasium.map((one) => el("option", { value: one.name }, `${one.title} (${one.name})`)));
  $("toy-tab").hidden = library.gymnasium.length === 0;
  $("file-world").replaceChildren(...library.files.map((one) => el("option", { value: one }, one)));
  $("file-list").replaceChildren(...[...library.files, "state-indicator", "coordinates", "macro-cells:4", "time"].map((one) => el("option", { value: one })));
  const entries = [
    ...library.sessions.map((one) => [`${one.title}, ${new Date(1000 * one.changed).toLocaleString()}`, one.name, () => open(one.name)]),
    ...library.runs.map((one) => [`Run ${one}`, one, async () => begun(await post("runs", { run: one }))]),
  ];
  $("saved").replaceChildren(...entries.map(([words, name, act]) => el("li", {}, el("button", { type: "button", "data-name": name, onclick: () => inTurn(act) }, words), el("small", {}, name))));
  if (!entries.length) $("saved").append(el("li", {}, "There is none yet in this directory."));
  showKind();
}

$("begin").addEventListener("click", () => inTurn(async () => begun(await post("sessions", { world: choice() }))));
$("another").addEventListener("click", async () => {
  listening?.abort();
  place.session = "";
  state = null;
  $("session").hidden = true;
  $("another").hidden = true;
  $("choose").hidden = false;
  $("subtitle").textContent = "Show how it is done; read what is guaranteed.";
  try { await showLibrary(); calm(); } catch (fault) { complain(fault); }
  document.querySelector("input[name=kind]:checked").focus();
});

const open = async (name) => begun(await get(`sessions/${name}`));

function begun(found) {
  listening?.abort();
  listening = new AbortController();
  place.session = found.name;
  $("choose").hidden = true;
  $("session").hidden = false;
  $("another").hidden = false;
  $("replay-boards").replaceChildren();
  $("audited").textContent = "";
  state = null;
  show(found);
  listen(found.name, listening.signal, message, connection);
  $("board").focus();
}

function connection(there, fault) {
  $("connection").textContent = there ? "connected" : "not connected";
  $("connection").className = there ? "good" : "bad";
  if (!there && fault?.status === 401) complain(fault);
}

function message(content) {
  if (!state) return;
  if (content.state && content.state.version >= state.version) show(content.state);
  if (content.position && content.position.version > position.version) { position = content.position; state.version = position.version; showBoard(); }
  if (content.progress) {
    const one = content.progress;
    const low = one.lower_bound === null ? "" : `; no policy is below ${number(one.lower_bound)}`;
    $("progress").textContent = `${one.task}, ${one.seconds} s, iteration ${one.iteration}` + (one.objective === null ? "" : `: ${number(one.objective)}${low}`);
  }
  if (content.solved) $("progress").textContent = "The solve has ended.";
}

// Demonstrating

const cellOf = (at, step) => step?.shown ?? state.board.place[at];
const actionName = (action) => state.board.kind === "road" && state.board.states[position.state] === null
  ? state.board.speeds[action] : state.actions[action];

function act(action) {
  inTurn(async () => {
    if (position.ended) { announce("The episode has ended. Enter keeps it, Backspace undoes."); return; }
    if (!position.offered.includes(action)) return;
    const name = actionName(action);
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

$("board").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || !state) return;
  const action = state.board.actions.findIndex((one) => one.key === event.key);
  if (action >= 0) act(action);
  else if (event.key === "Backspace") undo();
  else if (event.key === "Enter") finish();
  else if (event.key === "r" || event.key === "R") restart();
  else return;
  event.preventDefault();
});
$("undo").addEventListener("click", undo);
$("finish").addEventListener("click", finish);
$("restart").addEventListener("click", () => restart());
$("advised").addEventListener("click", () => { restart(state.view.next_start); $("board").focus(); });

function words() {
  const last = position.last;
  const place = position.steps && position.ended === "terminated" && position.name === "the end" ? "" : ` You are in ${position.name}.`;
  let text = position.steps ? `Step ${position.steps}.` : `${position.chosen ? "Advised start" : "Start"}.`;
  if (last?.slipped) text += " You slipped: the dashed line shows where you aimed.";
  if (state.board.kind === "road") text += " " + roadWords(state.board, state.board.states[position.state]);
  else text += place;
  if (position.ended === "terminated") text += " The episode has terminated: Enter keeps it.";
  if (position.ended === "limit") text += ` The time limit of ${state.world.most_steps} steps truncates the episode: Enter keeps it.`;
  return text;
}

function showBoard() {
  const board = state.board;
  const last = position.last;
  const at = board.kind === "grid" ? cellOf(position.state, last) : null;
  const advised = state.view?.next_start ?? null;
  if (board.kind === "grid") {
    $("board").replaceChildren(drawGrid(board, { trail: position.trail, at, last, advised: advised === null || !board.map ? null : board.place[advised], label: `Map; you are in ${position.name}` }));
  } else if (board.kind === "road") {
    $("board").replaceChildren(drawRoad(board, board.states[position.state]));
  } else {
    $("board").replaceChildren(el("p", { class: "here" }, position.name), el("p", { class: "note" }, "So far: " + position.trail.join(" → ")));
  }
  $("what").textContent = words();
  $("what").className = last?.slipped ? "slipped" : position.ended ? "over" : "";
  $("position").textContent = `Episode ${state.episodes.length + 1}: ${position.steps} of at most ${state.world.most_steps} steps. Arrows or numbers act, Backspace undoes, Enter keeps, R restarts.`;
  $("pad").replaceChildren(...board.actions.map((one, action) => el("button", {
    type: "button", class: "act " + one.name.replace(/\W/g, "-"), disabled: Boolean(position.ended) || !position.offered.includes(action),
    "aria-label": actionName(action), onclick: () => act(action),
  }, { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" }[one.key] ?? "", " " + actionName(action), one.key.length === 1 ? el("kbd", {}, one.key) : null)));
  $("pad").classList.toggle("cross", board.actions.slice(0, 4).length === 4 && board.kind === "grid");
  $("finish").disabled = !position.steps;
  $("undo").disabled = !position.steps;
}

// What is certified

function showClaim() {
  const view = state.view;
  $("chart").replaceChildren();
  if (!view) {
    $("claim").replaceChildren(el("p", {}, state.renewing ? "The first certificate is being made…" : state.problem || (state.episodes.length ? "None of these episodes counts here: starts that were chosen need a premise about your actions." : "Keep a first episode, and the certificate appears here.")));
    return;
  }
  const main = view.regret ?? view.gap;
  const about = view.regret
    ? "more than the best policy there is, under the cost that you have in mind, whichever that is"
    : "more than you, under every cost that is possible";
  const sure = view.regret && view.settings.premise === "rational" ? "" : view.settings.premise === "deterministic" ? "" : `With probability ${number(1 - view.failure_probability)}: `;
  const mark = !main.valid ? ["bad", "Contradicted"] : main.strength === "vacuous" ? ["warn", "Says nothing yet"] : main.strength === "weak" ? ["warn", "Weak"] : ["good", "Certified"];
  const lines = [
    el("p", { class: "mark " + mark[0] }, mark[1], state.current ? "" : " (being renewed…)"),
    el("p", { class: "bound" }, el("b", { id: "share" }, main.valid ? percent(main.share) : "—"), " of the most that is possible"),
  ];
  if (main.valid) lines.push(el("p", {}, `${sure}the apprentice costs at most ${number(main.bound)} ${about}. The most that is possible is ${number(main.possible)}.`));
  else lines.push(el("p", {}, "What you recorded contradicts what you declare: " + (view.premises.find((one) => one.status === "failed")?.detail ?? "a premise failed") + "."));
  if (view.regret) {
    lines.push(el("p", { class: "note" }, "Rests on what you declare: on average an action costs at most "
      + `${number(view.settings.regret_per_step)} more than the best one would.` + (view.gap.valid ? ` Whatever you had in mind: at most ${number(view.gap.bound)} (${percent(view.gap.share)}) more than you.` : "")));
  } else if (view.settings.premise === "none") {
    lines.push(el("p", { class: "note" }, "Each number holds with its own probability. If you stop as soon as one pleases you, that probability is not the one stated: decide beforehand how many episodes you record."));
  }
  if (view.note) lines.push(el("p", { class: "note" }, view.note));
  const left = state.episodes.length - state.episodes.filter((one) => one.counted).length;
  if (left) lines.push(el("p", { class: "note" }, `${left} of ${state.episodes.length} episodes began in a chosen state and do not count here.`));
  if (state.problem) lines.push(el("p", { class: "bad" }, state.problem));
  $("claim").replaceChildren(...lines);
  if (state.curve.length) {
    const listed = state.curve.map((one) => `${one.episodes}: ${percent(one.share)}`).join(", ");
    $("chart").replaceChildren(el("figure", {}, drawCurve(state.curve, state.episodes.length, `The bound by number of episodes. ${listed}.`), el("figcaption", {}, "The bound, as a share of the most that is possible, by the number of episodes. Above the dashed line it is weak.")));
  }
  $("more").replaceChildren(
    el("p", {}, view.summary),
    table(["Part of the bound", "Amount"], view.terms.map((one) => [one.name, number(one.value)])),
    table(["Premise", "Status", "Detail"], view.premises.map((one) => [one.name, one.status, one.detail])),
    el("ul", {}, view.advice.filter((one) => one).map((one) => el("li", {}, one))),
    el("p", { class: "note" }, `Found by ${view.solver}, in ${number(view.seconds)} s.`),
  );
}

for (const one of document.querySelectorAll("input[name=premise]")) one.addEventListener("change", declare);
for (const id of ["regret", "cost-class", "delta"]) $(id).addEventListener("change", declare);
function declare() {
  const settings = {
    premise: document.querySelector("input[name=premise]:checked").value, regret_per_step: Number($("regret").value),
    cost_class: $("cost-class").value, failure_probability: Number($("delta").value),
  };
  inTurn(async () => show(await post(own("settings"), settings)));
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

function showEpisodes() {
  if (!state.episodes.length) { $("episodes").replaceChildren(el("p", { class: "note" }, "None yet.")); return; }
  const rows = state.episodes.slice(-200).reverse().map((one) => [
    String(one.number), one.start + (one.chosen ? " (chosen)" : ""), String(one.steps),
    one.terminated ? "terminated" : one.limit ? "truncated by the time limit" : "truncated by you", String(one.slips),
    el("button", { type: "button", "aria-label": `Drop episode ${one.number}`, onclick: () => drop(one.number) }, "Drop"),
  ]);
  $("episodes").replaceChildren(table(["Episode", "Start", "Steps", "End", "Slips", ""], rows));
}
const drop = (episode) => inTurn(async () => { show(await post(own("drop"), { episode })); announce(`Episode ${episode} is dropped.`); $("board").focus(); });

// The apprentice

function showApprentice() {
  const view = state.view, board = state.board;
  $("apprentice").hidden = !view;
  if (!view) return;
  if (board.map) {
    const most = Math.max(...view.visits.expert, ...view.visits.apprentice, 1e-9);
    const figure = (picture, words) => el("figure", {}, picture, el("figcaption", {}, words));
    $("maps").replaceChildren(
      figure(drawPolicy(board, view, state.actions, "The policy: arrows by probability"), "Policy: the darker an arrow, the likelier the move."),
      figure(drawVisits(board, view.states, view.visits.expert, "expert", most, "Where you spend your time"), "Where you spend your time."),
      figure(drawVisits(board, view.states, view.visits.apprentice, "apprentice", most, "Where the apprentice does"), "Where the apprentice does."),
    );
  } else {
    const rows = view.most_visited.filter((one) => view.states.includes(one)).slice(0, 40).map((at) => {
      const row = view.states.indexOf(at);
      const best = [...view.policy[row]].sort((a, b) => b[1] - a[1])[0];
      return [nameOf(at), state.actions[best[0]], percent(best[1]), percent(view.visits.expert[row]), percent(view.visits.apprentice[row])];
    });
    $("maps").replaceChildren(el("div", { class: "scroll wide" }, table(["State", "Likeliest action", "Probability", "Your time", "Apprentice's time"], rows, "The policy where most time is spent")));
  }
  const ranges = view.ranges;
  $("ranges").replaceChildren(ranges
    ? el("figure", {}, drawRanges(ranges, ranges.map((one) => `${one.name} ${number(one.low)} to ${number(one.high)}`).join("; ")), el("figcaption", {}, "Weights that your actions leave open, in units of what acting at random costs more than the best policy. Right of the line: it costs; left: it is worth having."))
    : el("p", { class: "note" }, state.renewing ? "Being found…" : view.settings.premise === "rational" ? "Not known here: too large to find at once, or contradicted." : "Declare that your actions are nearly the best ones to see what they show."));
  $("costs").replaceChildren(table(["", "You", "Apprentice"], view.costs.map((one) => [one.name, number(one.expert), number(one.apprentice)])));
  const chosen = $("replay-episode").value;
  $("replay-episode").replaceChildren(...state.episodes.slice(-200).map((one) => el("option", { value: one.number, selected: String(one.number) === chosen || undefined }, String(one.number))));
  if (!chosen) $("replay-episode").value = String(state.episodes.at(-1)?.number ?? "");
}

function nameOf(at) {
  if (state.board.names) return state.board.names[at];
  if (state.board.kind === "road") return state.board.states[at] === null ? "choosing the speed" : roadWords(state.board, state.board.states[at]).replace(/^Speed /, "");
  return `state ${at}`;
}

$("replay").addEventListener("click", () => inTurn(async () => {
  draw += 1;
  const found = await post(own("replay"), { episode: Number($("replay-episode").value), draw });
  play(found);
}));

function play(found) {
  const mine = ++playing;
  const length = Math.max(found.expert.states.length, found.apprentice.states.length);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const frame = (who, run, time) => {
    const at = Math.min(time, run.states.length - 1);
    const ended = at === run.states.length - 1 ? (run.terminated ? "terminated" : "truncated") : `step ${at}`;
    let picture;
    if (state.board.kind === "grid") {
      const trail = run.states.slice(0, at + 1).map((one) => state.board.place[one]).filter((one) => one >= 0);
      picture = drawGrid(state.board, { trail, at: trail.at(-1) ?? null, who, label: `${who}: ${ended}` });
    } else if (state.board.kind === "road") picture = drawRoad(state.board, state.board.states[run.states[at]], who);
    else picture = el("p", { class: "here" }, run.states.slice(Math.max(0, at - 8), at + 1).map(nameOf).join(" → "));
    return el("figure", {}, picture, el("figcaption", {}, `${who === "expert" ? "You" : "The apprentice"}: ${ended}`));
  };
  const show = (time) => $("replay-boards").replaceChildren(frame("expert", found.expert, time), frame("apprentice", found.apprentice, time));
  const tick = (time) => {
    if (mine !== playing || !state) return;
    show(time);
    if (time < length - 1) setTimeout(() => tick(time + 1), 180);
    else announce(`You ${found.expert.terminated ? "terminated" : "were truncated"} after ${found.expert.actions.length} steps, the apprentice ${found.apprentice.terminated ? "terminated" : "was truncated"} after ${found.apprentice.actions.length}.`);
  };
  tick(still ? length - 1 : 0);
}

$("solve").addEventListener("click", () => inTurn(async () => {
  const method = { name: $("method").value };
  if (method.name === "sgd-al") method.steps = Number($("steps").value);
  $("progress").textContent = "Solving…";
  show(await post(own("solve"), state.resumable && !state.resumable.running && state.resumable.solver.name === method.name ? state.resumable.solver : method));
}));
$("stop").addEventListener("click", async () => { try { await post(own("stop")); } catch (fault) { complain(fault); } });
$("method").addEventListener("change", () => showSolve());
function showSolve() {
  const resumable = state.resumable && !state.solving && state.resumable.solver.name === $("method").value;
  $("solve").textContent = resumable ? (state.resumable.goes_on ? "Resume" : "Start again") : "Solve";
  $("solve").disabled = state.solving;
  $("stop").disabled = !state.solving;
  $("steps").disabled = $("method").value !== "sgd-al";
  if (resumable) $("progress").textContent = state.resumable.goes_on ? "Stopped; it goes on from where it was." : "Stopped; this method starts again.";
}

// Files

$("files").append(...Object.entries(FILES).map(([file, words]) => el("button", {
  type: "button", "data-file": file, onclick: async () => {
    try { announce(`${await download(own(`files/${file}`))} is downloaded.`); calm(); } catch (fault) { complain(fault); }
  },
}, words)));
$("audit").addEventListener("click", async () => {
  $("audited").textContent = "Auditing…";
  try {
    const found = await post(own("audit"));
    $("audited").textContent = found.text;
    $("audited").className = found.passed ? "good" : "bad";
    calm();
  } catch (fault) { $("audited").textContent = ""; complain(fault); }
});

function show(found) {
  const first = state === null;
  state = found;
  position = found.position;
  $("subtitle").textContent = `${found.title}: ${found.world.states} states, discount ${found.world.discount}`;
  $("where").textContent = found.saved ? `Everything is kept in the directory ${found.name}; journeyman audit ${found.name} checks it without this page.` : "Nothing is written before your first step.";
  if (first) $("legend").replaceChildren(...found.board.legend.map((one) => el("li", {}, swatch(one.look), one.name)));
  const advised = found.view?.next_start ?? null;
  $("advised").hidden = advised === null || found.settings.premise !== "rational";
  $("advised").textContent = "Start where it helps most";
  for (const one of $("files").children) one.disabled = one.dataset.file === "demonstrations.csv" ? !found.episodes.length : !found.view;
  $("audit").disabled = !found.view;
  showBoard(); showSettings(); showClaim(); showEpisodes(); showApprentice(); showSolve();
}
function swatch(look) {
  const picture = drawGrid({ rows: 1, columns: 1, looks: [look] }, { label: "" });
  picture.setAttribute("aria-hidden", "true");
  picture.classList.add("swatch");
  return picture;
}

(async () => {
  if (!place.token) { complain("The address lacks its token: open the one that journeyman studio printed."); return; }
  try {
    await showLibrary();
    if (place.session) await open(place.session);
  } catch (fault) { complain(fault); place.session = ""; }
})();
