// Replicas x time on a canvas: a pixel for each cell, stretched; 220 replicas over an hour are drawn in milliseconds.

import * as formats from "./formats.js";

export const LEFT = 72, RIGHT = 26;
const AXIS = 18, GAP = 5, LOWEST_NAMED = 11;
// From little to much the colours leave that of the paper, and get steadily darker (or lighter): they can be told
// apart without seeing hues, and in print.
const LIGHT = ["#fffbe9", "#fee9ae", "#fecb6b", "#f99e37", "#e6711b", "#c04a09", "#8c2f06", "#541c06"];
const DARK = ["#232031", "#3f1d5c", "#6b1f6d", "#982d65", "#c43f4f", "#e8622f", "#f99b16", "#fcf7a8"];

function palette() {
  const stops = (formats.isDark() ? DARK : LIGHT).map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, shade) => {
    const at = (shade / 255) * (stops.length - 1), low = Math.min(stops.length - 2, Math.floor(at));
    return stops[low].map((value, part) => Math.round(value + (at - low) * (stops[low + 1][part] - value)));
  });
}

const role = (replica) => replica.slice(0, replica.lastIndexOf("-"));

export class HeatMap {
  constructor(frame, scale, { marks, zoom }) {
    this.canvas = frame.querySelector("canvas");
    this.tip = frame.querySelector(".tip");
    this.scale = scale;
    this.marks = marks;
    this.zoom = zoom;
    this.range = null;
    this.picked = null;
    new ResizeObserver(() => this.draw()).observe(frame);
    formats.onLook(() => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.pick(null));
    this.canvas.addEventListener("pointerdown", (event) => { this.dragged = this.time(event.offsetX); });
    this.canvas.addEventListener("pointerup", (event) => this.release(event));
    this.canvas.addEventListener("dblclick", () => this.zoom(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.pick(null));
  }

  show(course, range) {
    this.course = course;
    this.range = range;
    this.draw();
    if (this.picked) this.pick(this.picked);
  }

  // Rows of a role with few replicas are higher, so that the few parameter servers are seen beside many workers.
  layout() {
    const counts = new Map();
    for (const replica of this.course.replicas) counts.set(role(replica), (counts.get(role(replica)) ?? 0) + 1);
    let top = 2, before = null;
    return this.course.replicas.map((replica) => {
      const height = Math.max(3, Math.min(22, Math.floor(340 / counts.get(role(replica)))));
      if (before !== null && role(replica) !== before) top += GAP;
      before = role(replica);
      const row = { replica, top, height };
      top += height;
      return row;
    });
  }

  highest() {
    if (this.course.shares) return 1;
    if (this.course.unit === "share") return 1;
    return Math.max(...this.course.values.map((row) => Math.max(...row)), 0) || 1;
  }

  level(row, cell) {
    return (this.course.shares ?? this.course.values)[row]?.[cell] ?? null;
  }

  times() {
    const { since_unix_seconds: since, cells, cell_seconds: width } = this.course;
    return this.range ?? [since, since + Math.max(1, cells) * width];
  }

  time(x) {
    const [from, to] = this.times();
    return from + ((x - LEFT) / Math.max(1, this.canvas.clientWidth - LEFT - RIGHT)) * (to - from);
  }

  place(at) {
    const [from, to] = this.times();
    return LEFT + ((at - from) / (to - from)) * (this.canvas.clientWidth - LEFT - RIGHT);
  }

  draw() {
    if (!this.course) return;
    const rows = (this.rows = this.layout());
    const last = rows.at(-1);
    const width = this.canvas.parentElement.clientWidth, height = (last ? last.top + last.height : 40) + AXIS + 4;
    const dense = devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * dense);
    this.canvas.height = Math.round(height * dense);
    const pen = this.canvas.getContext("2d");
    pen.scale(dense, dense);
    pen.imageSmoothingEnabled = false;
    this.drawCells(pen, rows, width);
    this.drawNames(pen, rows, width);
    this.drawAxis(pen, width, height - AXIS);
    this.drawScale();
  }

  drawCells(pen, rows, width) {
    const { cells, since_unix_seconds: since, cell_seconds: seconds } = this.course;
    if (!cells || !rows.length) return;
    const colours = palette(), top = this.highest();
    const image = new ImageData(cells, rows.length);
    rows.forEach((_, row) => {
      for (let cell = 0; cell < cells; cell++) {
        const level = this.level(row, cell);
        if (level === null) continue;
        const shade = colours[Math.round(255 * Math.min(1, Math.max(0, level / top)))];
        image.data.set([...shade, 255], 4 * (row * cells + cell));
      }
    });
    const small = new OffscreenCanvas(cells, rows.length);
    small.getContext("2d").putImageData(image, 0, 0);
    const left = this.place(since), right = this.place(since + cells * seconds);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT - RIGHT, 1e4);
    pen.clip();
    rows.forEach(({ top: y, height }, row) => {
      const gap = height > 5 ? 1 : 0;
      pen.drawImage(small, 0, row, cells, 1, left, y, right - left, height - gap);
    });
    pen.globalAlpha = 0.75;
    for (const mark of this.marks()) drawMark(pen, mark, this.place(mark.at), 0, rows.at(-1).top + rows.at(-1).height);
    pen.restore();
  }

  drawNames(pen, rows, width) {
    pen.font = `11px ${getComputedStyle(this.canvas).fontFamily}`;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    let before = null;
    const hottest = this.hottest();
    rows.forEach(({ replica, top, height }, row) => {
      const hot = hottest?.row === row;
      pen.fillStyle = formats.colour(hot ? "ink" : "muted");
      if (height >= LOWEST_NAMED) pen.fillText(replica, LEFT - 8, top + height / 2);
      else if (role(replica) !== before) pen.fillText(`${role(replica)} …`, LEFT - 8, top + 6);
      before = role(replica);
      if (!hot) return;
      pen.beginPath();
      pen.moveTo(width - RIGHT + 3, top + height / 2);
      pen.lineTo(width - 2, top + height / 2 - 5);
      pen.lineTo(width - 2, top + height / 2 + 5);
      pen.fill();
    });
  }

  drawAxis(pen, width, top) {
    const [from, to] = this.times();
    const wanted = (to - from) / Math.max(2, Math.floor((width - LEFT) / 90));
    const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400].find((each) => each >= wanted) ?? 86400;
    pen.fillStyle = formats.colour("muted");
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = this.place(at), text = formats.clock(at);
      pen.fillRect(x, top, 1, 3);
      if (x > LEFT + 4 && x < width - RIGHT - 8) pen.fillText(step < 60 ? text : text.slice(0, 5), x, top + 5);
    }
  }

  drawScale() {
    const canvas = this.scale.querySelector("canvas"), pen = canvas.getContext("2d"), colours = palette();
    for (let x = 0; x < canvas.width; x++) {
      pen.fillStyle = `rgb(${colours[Math.round((255 * x) / (canvas.width - 1))].join(" ")})`;
      pen.fillRect(x, 0, 1, canvas.height);
    }
    const shown = (value) => (this.course.shares ? formats.share(value) : formats.withUnit(value, this.course.unit));
    this.scale.querySelector(".low").textContent = shown(0);
    this.scale.querySelector(".high").textContent = shown(this.highest());
  }

  // The replica with the highest mean over the last minute, or over all of a job that has ended.
  hottest(seconds = this.course.live ? 60 : Infinity) {
    const { cells, cell_seconds: width } = this.course;
    const first = Math.max(0, cells - Math.max(2, Math.ceil(seconds / width)));
    let best = null;
    this.course.replicas.forEach((replica, row) => {
      const known = [];
      for (let cell = first; cell < cells; cell++) if (this.level(row, cell) !== null) known.push(cell);
      if (!known.length) return;
      const mean = (of) => known.reduce((sum, cell) => sum + of(cell), 0) / known.length;
      const level = mean((cell) => this.level(row, cell));
      if (best === null || level > best.level)
        best = { row, replica, level, value: mean((cell) => this.course.values[row][cell] ?? 0) };
    });
    return best;
  }

  point(event) {
    const { offsetX: x, offsetY: y } = event;
    const row = this.rows?.findIndex((each) => y >= each.top && y < each.top + each.height) ?? -1;
    const cell = Math.floor((this.time(x) - this.course.since_unix_seconds) / this.course.cell_seconds);
    this.pick(row < 0 || x < LEFT || cell < 0 || cell >= this.course.cells ? null : { row, cell });
  }

  pick(picked) {
    this.picked = picked;
    this.tip.hidden = picked === null || !this.rows?.[picked.row];
    if (this.tip.hidden) return;
    const { since_unix_seconds: since, cell_seconds: width, unit, values, shares } = this.course;
    const { row, cell } = picked, value = values[row][cell], part = shares?.[row][cell];
    const said = value === null || value === undefined ? this.scale.lastChild.textContent.trim() : formats.withUnit(value, unit);
    const at = since + cell * width;
    this.tip.textContent = `${this.rows[row].replica}  ${said}${part === null || part === undefined ? "" : ` (${formats.share(part)})`}  ${formats.clock(at)} – ${formats.clock(at + width)}`;
    const x = this.place(at + width / 2), { top, height } = this.rows[row];
    const most = this.canvas.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(most, x + 12))}px`;
    this.tip.style.top = `${top + height + 6}px`;
  }

  release(event) {
    const from = this.dragged, to = this.time(event.offsetX);
    this.dragged = null;
    if (from === null || Math.abs(this.place(from) - event.offsetX) < 8) return;
    this.zoom([Math.min(from, to), Math.max(from, to)]);
  }

  key(event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "Escape") this.pick(null);
    if (!steps[event.key] || !this.rows?.length) return;
    const at = this.picked ?? { row: this.hottest()?.row ?? 0, cell: this.course.cells - 1 };
    const [down, right] = this.picked ? steps[event.key] : [0, 0];
    const within = (value, most) => Math.max(0, Math.min(most, value));
    this.pick({ row: within(at.row + down, this.rows.length - 1), cell: within(at.cell + right, this.course.cells - 1) });
    event.preventDefault();
    event.stopPropagation();
  }
}

const MARKS = { event: ["muted", [1, 3]], bad: ["bad", []], change: ["green", [5, 3]], finding: ["purple", [2, 2]] };

export function drawMark(pen, { kind }, x, top, bottom) {
  const [name, dashes] = MARKS[kind] ?? MARKS.event;
  pen.save();
  pen.strokeStyle = formats.colour(name);
  pen.lineWidth = kind === "event" ? 1 : 1.5;
  pen.setLineDash(dashes);
  pen.beginPath();
  pen.moveTo(x, top);
  pen.lineTo(x, bottom);
  pen.stroke();
  pen.restore();
}
