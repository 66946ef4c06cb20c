// Elements, boards and pictures. Text is always set as text; nothing here makes markup of it.

const SVG = "http://www.w3.org/2000/svg";
const CELL = 20;
export const MOVES = { up: [-1, 0], right: [0, 1], down: [1, 0], left: [0, -1] };
const GLYPHS = { "*": "★", S: "S", H: "○", R: "R", G: "G", Y: "Y", B: "B" };

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((one) => one !== null && one !== undefined));
  return node;
}
export const el = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
export const number = (value) => Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3)
  ? value.toExponential(1) : String(Number(value.toPrecision(3)));
export const percent = (share) => (share >= 0.995 && share < 1 ? "over 99" : share < 0.0995 && share > 0
  ? String(Number((100 * share).toPrecision(2))) : String(Math.round(100 * share))) + "\u00a0%";

const lookClass = (look) => "look-" + ({ "#": "wall", "*": "goal" }[look] ?? look);
const middle = (board, cell) => [CELL * (cell % board.columns) + CELL / 2, CELL * Math.floor(cell / board.columns) + CELL / 2];

function floor(board, label) {
  const width = CELL * board.columns, height = CELL * board.rows;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "grid" });
  board.looks.forEach((look, cell) => {
    const x = CELL * (cell % board.columns), y = CELL * Math.floor(cell / board.columns);
    picture.append(svg("rect", { x, y, width: CELL, height: CELL, class: "cell " + lookClass(look), "data-cell": cell }));
    const glyph = GLYPHS[look] ?? (look > "1" && look < "9" ? look : "");
    if (glyph) picture.append(svg("text", { x: x + 2, y: y + 6, class: "glyph" }, glyph));
  });
  for (const cell of board.bars ?? []) {
    const x = CELL * (cell % board.columns + 1), y = CELL * Math.floor(cell / board.columns);
    picture.append(svg("line", { x1: x, x2: x, y1: y + 1, y2: y + CELL - 1, class: "bar" }));
  }
  return picture;
}

// Who is where in the taxi's world: its states are numbered by cell, passenger and destination.
function drawPassenger(picture, board, state, at) {
  const passenger = Math.floor(state / 4) % 5;
  const [toX, toY] = middle(board, board.stops[state % 4]);
  const [x, y] = middle(board, passenger < 4 ? board.stops[passenger] : at);
  picture.append(mark("flag", toX, toY), mark("passenger", x, y));
}
const mark = (name, x, y) => (name === "flag"
  ? svg("rect", { x: x - 8.5, y: y - 8.5, width: 17, height: 17, rx: 2, class: "flag" })
  : svg("circle", { cx: x, cy: y, r: 3, class: "passenger" }));

export function drawGrid(board, { trail = [], at = null, last = null, advised = null, state = null, label = "Map", who = "expert" }) {
  const picture = floor(board, label);
  if (advised !== null && advised >= 0) {
    const [x, y] = middle(board, advised);
    picture.append(svg("circle", { cx: x, cy: y, r: 8, class: "advised" }));
  }
  const points = trail.filter((cell) => cell >= 0).map((cell) => middle(board, cell).join(","));
  if (points.length > 1) picture.append(svg("polyline", { points: points.join(" "), class: "trail " + who }));
  if (last?.slipped && last.intended >= 0 && trail.length > 1) {
    const [x1, y1] = middle(board, trail.at(-2)), [x2, y2] = middle(board, last.intended);
    picture.append(svg("line", { x1, y1, x2, y2, class: "intended" }), svg("circle", { cx: x2, cy: y2, r: 3, class: "intended" }));
  }
  if (at !== null && at >= 0) {
    const [x, y] = middle(board, at);
    picture.append(svg("circle", { cx: x, cy: y, r: 6.5, class: "agent " + who }));
    if (board.stops && state !== null && board.place[state] >= 0) drawPassenger(picture, board, state, at);
  }
  return picture;
}

// One cell, for legends.
export function swatch(look, name) {
  const picture = drawGrid({ rows: 1, columns: 1, looks: [look] }, { label: "" });
  if (name) picture.append(mark(name, CELL / 2, CELL / 2));
  picture.setAttribute("aria-hidden", "true");
  picture.classList.add("swatch");
  return picture;
}

export function drawRoad(board, state, who = "expert") {
  const picture = svg("svg", { viewBox: "0 0 108 200", role: "img", class: "road", "aria-label": roadWords(board, state) });
  const x = (value) => value - 96;
  picture.append(svg("rect", { x: 0, y: 0, width: 108, height: 200, class: "verge" }));
  picture.append(svg("rect", { x: x(120), y: 0, width: 60, height: 200, class: "asphalt" }));
  for (const lane of board.lanes.slice(0, 2)) picture.append(svg("line", { x1: x(lane), x2: x(lane), y1: 0, y2: 200, class: "lane" }));
  const shown = state === null ? { x: 160, lane: 0, distance: 0 } : state;
  if (state !== null) picture.append(svg("rect", { x: x(shown.lane - 20), y: shown.distance - 40, width: 20, height: 40, rx: 4, class: "other" }));
  picture.append(svg("rect", { x: x(shown.x - 19), y: 131, width: 18, height: 38, rx: 4, class: "agent " + who }));
  return picture;
}

export function roadWords(board, state) {
  if (state === null) return "Choose your speed: left slow, up middle, right fast.";
  const side = state.lane - state.x, ahead = 130 - state.distance;
  const place = state.x < 140 || state.x > 180 ? "beside the road" : `${state.x - 140} of 40 from the left edge of the road`;
  const across = Math.abs(side) < 20 ? "in your way" : `${Math.abs(side)} to the ${side < 0 ? "left" : "right"}`;
  const along = ahead > 20 ? `${ahead} ahead` : ahead < -40 ? "behind you" : "level with you";
  return `Speed ${board.speeds[state.speed]}, ${place}. The other car: ${along}, ${across}.`;
}

export function drawPolicy(board, view, actions, label) {
  const picture = floor(board, label);
  view.states.forEach((state, row) => {
    const cell = board.place[state];
    if (cell < 0 || "*H".includes(board.looks[cell])) return;
    const [x, y] = middle(board, cell);
    for (const [action, probability] of view.policy[row]) {
      const move = MOVES[(actions[action] ?? "").toLowerCase()];
      const mark = move
        ? svg("path", { d: "M0-8L4-1H-4Z", transform: `translate(${x} ${y}) rotate(${{ up: 0, right: 90, down: 180, left: 270 }[actions[action].toLowerCase()]})` })
        : svg("circle", { cx: x, cy: y, r: 2 });
      mark.setAttribute("class", "arrow");
      mark.setAttribute("fill-opacity", Math.max(0.08, probability).toFixed(2));
      picture.append(mark);
    }
  });
  return picture;
}

export function drawVisits(board, states, visits, who, most, label) {
  const picture = floor(board, label);
  picture.classList.add("plain");
  states.forEach((state, row) => {
    const cell = board.place[state];
    if (cell < 0 || visits[row] <= 0) return;
    const [x, y] = middle(board, cell);
    picture.append(svg("rect", { x: x - 10, y: y - 10, width: 20, height: 20, class: "visits " + who, "fill-opacity": Math.sqrt(visits[row] / most).toFixed(3) }));
  });
  return picture;
}

export function drawCurve(points, total, label) {
  const wide = 360, high = 160, left = 44, low = 122;
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": label, class: "chart" });
  const x = (count) => left + (wide - left - 14) * (total > 1 ? (count - 1) / (total - 1) : 0.5);
  const y = (share) => low - (low - 12) * Math.min(share, 1);
  for (const share of [0, 0.5, 1]) {
    picture.append(svg("line", { x1: left, x2: wide, y1: y(share), y2: y(share), class: share === 0.5 ? "half" : "rule" }));
    picture.append(svg("text", { x: left - 6, y: y(share) + 4, class: "end" }, `${100 * share} %`));
  }
  const ticks = [...new Set([1, Math.ceil(total / 2), total])];
  for (const one of ticks) picture.append(svg("text", { x: x(one), y: low + 16, class: "mid" }, String(one)));
  picture.append(svg("text", { x: (left + wide) / 2, y: high - 2, class: "mid quiet" }, "episodes"));
  const sound = points.filter((one) => one.valid);
  if (sound.length > 1) picture.append(svg("polyline", { points: sound.map((one) => `${x(one.episodes)},${y(one.share)}`).join(" "), class: "curve" }));
  const last = sound.at(-1);
  if (last) picture.append(svg("text", { x: Math.min(x(last.episodes), wide - 16), y: y(last.share) - 8, class: "mid" }, percent(last.share)));
  for (const one of points) picture.append(svg("circle", { cx: x(one.episodes), cy: y(one.share), r: 3.5, class: one.valid ? "point" : "point refuted" }));
  return picture;
}

export function drawRanges(ranges, label) {
  const wide = 360, row = 34, left = 4;
  const ends = ranges.flatMap((one) => [one.low, one.high, 0]);
  const least = Math.min(...ends), span = (Math.max(...ends) - least) || 1;
  const x = (value) => left + (wide - 2 * left) * (value - least) / span;
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${row * ranges.length + 6}`, role: "img", "aria-label": label, class: "chart" });
  picture.append(svg("line", { x1: x(0), x2: x(0), y1: 0, y2: row * ranges.length + 6, class: "rule" }));
  ranges.forEach((one, at) => {
    const known = one.low > 0 ? "costs" : one.high < 0 ? "is worth having"
      : one.high < span / 50 ? "is worth having, or nothing" : one.low > -span / 50 ? "costs, or nothing" : "open";
    picture.append(
      svg("text", { x: left, y: row * at + 14 }, `${one.name}: ${known}`),
      svg("rect", { x: x(one.low), y: row * at + 19, width: Math.max(2, x(one.high) - x(one.low)), height: 8, rx: 2, class: "range " + (one.low > 0 ? "above" : one.high < 0 ? "below" : "open") }),
    );
  });
  return picture;
}

export function table(heads, rows, caption) {
  return el("table", {}, caption ? el("caption", {}, caption) : null,
    el("thead", {}, el("tr", {}, heads.map((one) => el("th", { scope: "col" }, one)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, at) => at ? el("td", {}, cell) : el("th", { scope: "row" }, cell))))));
}
