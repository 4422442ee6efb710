// How training went, as lines over time (uPlot): examples a second, loss, quality; zoomed together.

import * as formats from "./formats.js";
import { drawMark, LEFT, RIGHT } from "./heat_map.js";

const STYLES = [["blue", []], ["vermilion", [6, 3]]];

// Each curve: the columns of a course that it shows, and how their values read.
const CURVES = {
  speed: { series: (course) => [cells(course, course.examples_per_second)], text: formats.number, zero: true },
  loss: { series: (course) => [cells(course, course.loss), points(course, "log_loss")], text: (value) => formats.number(value, 4) },
  quality: { series: (course) => [points(course, "auc"), points(course, "accuracy")], text: (value) => formats.number(value, 4) },
};

function cells(course, values) {
  const { since_unix_seconds: since, cell_seconds: width } = course;
  return values.map((value, cell) => [since + (cell + 0.5) * width, value]);
}

const points = (course, name) =>
  course.evaluations.map((each) => [each.at_unix_seconds, each[name]]).filter(([, value]) => value !== null);

// uPlot wants one column of times for all lines.
function joined(lines) {
  const times = [...new Set(lines.flatMap((line) => line.map(([at]) => at)))].sort((a, b) => a - b);
  return [times, ...lines.map((line) => {
    const known = new Map(line);
    return times.map((at) => known.get(at)); // null is a gap; undefined: of this line there is nothing at that time
  })];
}

export class Curve {
  constructor(frame, { marks, zoom }) {
    this.frame = frame;
    this.of = CURVES[frame.dataset.curve];
    this.names = [frame.dataset.name, frame.dataset.other].filter(Boolean);
    this.marks = marks;
    this.zoom = zoom;
    new ResizeObserver(() => this.plot?.setSize({ width: frame.clientWidth, height: this.plot.height })).observe(frame);
    formats.onLook(() => this.plot?.redraw(false));
  }

  show(course, range, whole) {
    const lines = this.of.series(course);
    this.frame.hidden = lines.every((line) => line.every(([, value]) => value === null));
    if (this.frame.hidden) return false;
    this.range = range ?? whole;
    this.plot ??= this.made();
    this.plot.setData(joined(lines), false);
    this.plot.batch(() => {
      this.plot.setScale("x", { min: this.range[0], max: this.range[1] });
    });
    return true;
  }

  made() {
    const title = document.createElement("p");
    title.className = "name";
    this.frame.append(title);
    const axis = { stroke: () => formats.colour("muted"), grid: { stroke: () => formats.colour("grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const said = (plot) => {
      const at = plot.cursor.idx;
      title.replaceChildren(...this.names.flatMap((name, place) => {
        const column = plot.data[place + 1];
        let cell = at ?? column.length - 1;
        while (cell > 0 && (column[cell] === undefined || column[cell] === null)) cell--;
        if (column[cell] === undefined || column[cell] === null) return [];
        const value = document.createElement("strong");
        value.textContent = this.of.text(column[cell]);
        return [`${place ? "   " : ""}${place ? "╌ " : "━ "}${name} `, value, at === null || at === undefined ? "" : ` ${formats.clock(plot.data[0][cell])}`];
      }));
    };
    return new uPlot({
      width: this.frame.clientWidth, height: 130,
      legend: { show: false },
      padding: [8, RIGHT, 0, 0],
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      cursor: { sync: { key: "course" }, drag: { x: true, y: false, setScale: false }, y: false, points: { size: 6 } },
      scales: { x: { time: true, auto: false }, y: { range: (_, low, high) => this.bounds(low, high) } },
      axes: [
        { ...axis, values: (_, splits, __, ___, step) => splits.map((at) => (step < 60 ? formats.clock(at) : formats.clock(at).slice(0, 5))), size: 26, gap: 6 },
        { ...axis, size: LEFT, gap: 8, space: 28, values: (_, splits) => splits.map((value) => this.of.text(value)) },
      ],
      series: [{}, ...this.names.map((_, place) => ({
        stroke: () => formats.colour(STYLES[place][0]), width: 1.6, dash: STYLES[place][1], spanGaps: place > 0 || this.names[0] === "AUC",
        points: { show: (plot, series) => plot.data[series].filter((value) => value !== null && value !== undefined).length < 40 && (place > 0 || this.frame.dataset.curve === "quality"), size: 5 },
      }))],
      hooks: {
        setCursor: [said], setData: [said],
        setSelect: [(plot) => {
          if (plot.select.width < 8) return;
          const [from, to] = [plot.select.left, plot.select.left + plot.select.width].map((x) => plot.posToVal(x, "x"));
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          this.zoom([from, to]);
        }],
        ready: [(plot) => plot.over.addEventListener("dblclick", () => this.zoom(null))],
        drawClear: [(plot) => {
          const { top, height } = plot.bbox;
          for (const mark of this.marks())
            if (mark.at >= this.range[0] && mark.at <= this.range[1])
              drawMark(plot.ctx, mark, plot.valToPos(mark.at, "x", true), top, top + height);
        }],
      },
    }, [[], ...this.names.map(() => [])], this.frame);
  }

  bounds(low, high) {
    if (low === null || low === undefined) return [0, 1];
    if (this.of.zero) return [0, high > 0 ? high * 1.08 : 1];
    const margin = (high - low) * 0.1 || Math.abs(high) * 0.05 || 0.5;
    return [low - margin, high + margin];
  }
}
