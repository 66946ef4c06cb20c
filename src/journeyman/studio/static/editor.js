// The drawing of a grid: regions, walls, goals and starts, by pointer or keyboard.

import { drawGrid, el, svg, swatch } from "./drawing.js";

const BRUSHES = [
  ...["ground", "pond", "meadow", "road", "sand", "mud"].map((name, at) => ({ look: String(at + 1), key: String(at + 1), name })),
  { look: "#", key: "w", name: "wall" }, { look: "*", key: "g", name: "goal" },
  { look: "start", key: "s", name: "start" },
];

// A first drawing that is worth walking through, whatever the size.
function sample(size) {
  return Array.from({ length: size }, (_, row) => Array.from({ length: size }, (_, column) => {
    const r = row / size, c = column / size;
    if (row === 0 && column === size - 1) return "*";
    if (size > 4 && column === Math.floor(size / 2) && r > 0.55 && row < size - 1) return "#";
    if (r >= 0.25 && r < 0.6 && c >= 0.25 && c < 0.6) return "2";
    if (c >= 0.7 && r >= 0.3) return "3";
    if (row === 0) return "4";
    return "1";
  }));
}

export class Editor {
  constructor(node, brushes, announce) {
    this.node = node;
    this.announce = announce;
    this.cells = sample(8);
    this.starts = new Set();
    this.cursor = 0;
    this.brush = "2";
    this.painted = false;
    this.tools = brushes;
    this.showBrushes();
    node.addEventListener("keydown", (event) => this.key(event));
    node.addEventListener("pointerdown", (event) => { this.painting = true; this.point(event); });
    node.addEventListener("pointermove", (event) => { if (this.painting) this.point(event); });
    addEventListener("pointerup", () => { this.painting = false; });
    this.draw();
  }

  get size() { return this.cells.length; }

  get board() {
    return { rows: this.size, columns: this.size, looks: this.cells.flat(), place: [], cells: [] };
  }

  resize(size) {
    if (!(size >= 3 && size <= 40) || size === this.size) return;
    const old = this.cells, starts = [...this.starts].map((cell) => [Math.floor(cell / old.length), cell % old.length]);
    this.cells = sample(size);
    this.starts.clear();
    if (this.painted) {  // what was drawn by hand is kept
      this.cells = this.cells.map((row, r) => row.map((_, c) => old[r]?.[c] ?? "1"));
      for (const [r, c] of starts) if (r < size && c < size) this.starts.add(r * size + c);
    }
    this.cursor = 0;
    this.draw();
  }

  fill(cells) {
    this.cells = cells ?? sample(this.size);
    this.painted = Boolean(cells);
    this.starts.clear();
    this.draw();
  }

  clear() { this.fill(this.cells.map((row) => row.map(() => "1"))); }

  get brushName() { return BRUSHES.find((one) => one.look === this.brush).name; }
  get namesRegion() { return /\d/.test(this.brush); }

  rename(name) {
    const brush = BRUSHES.find((one) => one.look === this.brush);
    brush.name = name.trim() || `region ${brush.look}`;
    this.tools.querySelector(`input[value="${brush.look}"]`).parentNode.lastChild.textContent = `${brush.name} (${brush.key})`;
  }

  choose(look) {
    this.brush = look;
    for (const one of this.tools.querySelectorAll("input")) one.checked = one.value === look;
    this.onbrush?.();
  }

  showBrushes() {
    for (const one of BRUSHES) {
      const input = el("input", { type: "radio", name: "brush", value: one.look, checked: one.look === this.brush });
      input.addEventListener("change", () => this.choose(one.look));
      this.tools.append(el("label", {}, input, swatch(one.look), el("span", {}, `${one.name} (${one.key})`)));
    }
  }

  draw() {
    const picture = drawGrid(this.board, { label: "The grid as drawn" });
    for (const cell of this.starts) {
      picture.append(svg("text", { x: 20 * (cell % this.size) + 6, y: 20 * Math.floor(cell / this.size) + 17, class: "start-mark" }, "S"));
    }
    picture.append(svg("rect", { x: 20 * (this.cursor % this.size) + 1, y: 20 * Math.floor(this.cursor / this.size) + 1, width: 18, height: 18, class: "cursor" }));
    this.node.replaceChildren(picture);
  }

  word(cell) {
    const look = this.cells[Math.floor(cell / this.size)][cell % this.size];
    const name = BRUSHES.find((one) => one.look === look).name;
    return `row ${Math.floor(cell / this.size) + 1}, column ${(cell % this.size) + 1}: ${name}${this.starts.has(cell) ? ", start" : ""}`;
  }

  paint(cell) {
    const row = Math.floor(cell / this.size), column = cell % this.size;
    const look = this.cells[row][column];
    this.painted = true;
    if (this.brush === "start") {
      if (look === "#" || look === "*") return;
      if (this.starts.has(cell) && !this.painting) this.starts.delete(cell); else this.starts.add(cell);
    } else {
      this.cells[row][column] = this.brush;
      if (this.brush === "#" || this.brush === "*") this.starts.delete(cell);
    }
    this.draw();
  }

  point(event) {
    const box = this.node.firstChild.getBoundingClientRect();
    const column = Math.floor(this.size * (event.clientX - box.left) / box.width);
    const row = Math.floor(this.size * (event.clientY - box.top) / box.height);
    if (row < 0 || column < 0 || row >= this.size || column >= this.size) return;
    const cell = row * this.size + column;
    if (event.type === "pointermove" && cell === this.cursor) return;
    this.cursor = cell;
    this.paint(cell);
  }

  key(event) {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    const brush = BRUSHES.find((one) => one.key === event.key.toLowerCase());
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (down || right) {
      const row = Math.min(Math.max(Math.floor(this.cursor / this.size) + down, 0), this.size - 1);
      const column = Math.min(Math.max((this.cursor % this.size) + right, 0), this.size - 1);
      this.cursor = row * this.size + column;
      this.draw();
    } else if (event.key === " ") {
      this.paint(this.cursor);
    } else if (brush) {
      this.choose(brush.look);
      this.announce(`brush ${brush.name}`);
      return;
    } else {
      return;
    }
    event.preventDefault();
    this.announce(this.word(this.cursor));
  }

  choice() {
    return {
      kind: "grid", cells: this.cells.map((row) => row.join("")), regions: BRUSHES.slice(0, 6).map((one) => one.name),
      starts: [...this.starts].map((cell) => [Math.floor(cell / this.size), cell % this.size]),
    };
  }
}
