// The page of a job: charts of its course, its output as it comes, traces. Without it the page has the same as text.

import { ask } from "./asking.js";
import { Curve } from "./curves.js";
import * as formats from "./formats.js";
import { HeatMap } from "./heat_map.js";
import { Logs } from "./logs.js";
import { follow } from "./traces.js";

const POLL_MS = 5000;
// What was measured this long ago may still come.
const LATE_SECONDS = 60;
// Fewer are not looked at, however near one goes.
const LEAST_CELLS = 5;

class Course {
  constructor(section) {
    this.section = section;
    this.gauge = "cpu";
    this.range = null;
    const shared = { marks: () => this.marks, zoom: (range) => this.zoom(range) };
    this.marks = [];
    this.heat = new HeatMap(section.querySelector(".heat"), section.querySelector(".scale"), shared);
    this.curves = [...section.querySelectorAll(".curve")].map((frame) => new Curve(frame, shared));
    this.whole = section.querySelector(".whole");
    this.whole.addEventListener("click", () => this.zoom(null));
    for (const button of section.querySelectorAll("[data-gauge]"))
      button.addEventListener("click", () => this.choose(button.dataset.gauge));
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.read(); });
    this.read();
  }

  choose(gauge) {
    this.gauge = gauge;
    this.course = null;
    for (const button of this.section.querySelectorAll("[data-gauge]"))
      button.setAttribute("aria-pressed", String(button.dataset.gauge === gauge));
    this.read();
  }

  async read() {
    clearTimeout(this.waiting);
    const gauge = this.gauge, known = this.course;
    const query = new URLSearchParams({ gauge });
    if (known) query.set("since", String(known.since_unix_seconds + known.cells * known.cell_seconds - Math.max(LATE_SECONDS, 2 * known.cell_seconds)));
    let part = null;
    try {
      const answer = await ask(`${this.section.dataset.url}?${query}`);
      if (answer.ok) part = await answer.json();
    } catch {
      // The server is away; it is asked again.
    }
    if (gauge !== this.gauge) return;
    if (part && known && !follows(part, known)) {
      this.course = null;
      this.read();
      return;
    }
    if (part) this.show(known ? merged(known, part) : part);
    const table = this.section.querySelector("details.table[open]");
    if (known) table?.dispatchEvent(new Event("refresh"));
    if (this.isLive() && !document.hidden) this.waiting = setTimeout(() => this.read(), POLL_MS);
  }

  isLive() {
    return this.section.dataset.live === "true" && !document.querySelector("#now [data-final]");
  }

  show(course) {
    this.course = { ...course, live: this.isLive() };
    for (const button of this.section.querySelectorAll("[data-gauge]"))
      button.disabled = !course.measured.includes(button.dataset.gauge);
    this.draw();
    this.section.dataset.drawn = this.gauge;
  }

  draw() {
    if (!this.course) return;
    const { since_unix_seconds: since, cells, cell_seconds: width } = this.course;
    this.marks = [...document.querySelectorAll("#line [data-mark]")].map((each) => ({ at: Number(each.dataset.at), kind: each.dataset.mark }));
    this.heat.show(this.course, this.range);
    const drawn = this.curves.map((curve) => curve.show(this.course, this.range, [since, since + Math.max(1, cells) * width]));
    this.section.querySelector(".curves .none").hidden = drawn.some(Boolean);
    this.section.querySelector(".curves .marks").hidden = !drawn.some(Boolean);
    this.tell();
  }

  tell() {
    const line = this.section.querySelector(".hottest"), best = this.heat.hottest();
    if (!best) {
      line.textContent = line.dataset.none;
      return;
    }
    const name = document.createElement("strong");
    name.textContent = best.replica;
    const said = formats.withUnit(best.value, this.course.unit);
    const share = this.course.shares ? `, ${formats.share(best.level)} ${line.dataset.of}` : "";
    line.replaceChildren(`${this.course.live ? line.dataset.busiest : line.dataset.busiestOver}: `, name, ` ${said}${share}`);
  }

  zoom(range) {
    const least = (range && LEAST_CELLS * this.course.cell_seconds - (range[1] - range[0])) / 2;
    this.range = range && least > 0 ? [range[0] - least, range[1] + least] : range;
    this.whole.hidden = range === null;
    this.draw();
  }
}

// Whether a part goes on with the same cells and the same replicas, and shares are known in both or in neither.
function follows(part, known) {
  return part.cell_seconds === known.cell_seconds && part.replicas.join() === known.replicas.join() &&
    (part.shares === null) === (known.shares === null);
}

function merged(known, part) {
  const kept = Math.round((part.since_unix_seconds - known.since_unix_seconds) / known.cell_seconds);
  const joined = (before, after) => [...before.slice(0, kept), ...after];
  const rows = (before, after) => (before && after ? before.map((row, place) => joined(row, after[place])) : after);
  const old = known.evaluations.filter((each) => part.evaluations.every((other) => other.at_unix_seconds !== each.at_unix_seconds));
  return {
    ...part,
    since_unix_seconds: known.since_unix_seconds,
    cells: kept + part.cells,
    values: rows(known.values, part.values),
    shares: rows(known.shares, part.shares),
    examples_per_second: joined(known.examples_per_second, part.examples_per_second),
    loss: joined(known.loss, part.loss),
    evaluations: [...old, ...part.evaluations],
  };
}

const course = new Course(document.getElementById("course"));
new Logs(document.querySelector(".logs"));
follow();
// Marks of the charts are what the time line says.
document.body.addEventListener("htmx:after:swap", () => course.draw());
