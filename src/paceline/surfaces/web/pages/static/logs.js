// The output of replicas as it comes. Lines are only ever text: whatever a job prints does nothing here.

import { ask } from "./asking.js";

const POLL_MS = 1500, FIRST_LINES = 500, MOST_LINES = 5000;
// What would colour a terminal (ECMA-48) is left out; other control characters are shown as such.
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])/g;
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
const shown = (text) => text.replace(ESCAPES, "").replace(CONTROLS, "\ufffd");

export class Logs {
  constructor(section) {
    this.section = section;
    this.form = section.querySelector("form");
    this.pause = section.querySelector(".pause");
    this.state = section.querySelector(".state");
    this.log = document.createElement("pre");
    this.log.className = "log";
    this.log.tabIndex = 0;
    this.log.setAttribute("role", "log");
    this.log.setAttribute("aria-labelledby", "logs-title");
    this.log.setAttribute("aria-live", "off");
    section.querySelector("#logs").replaceChildren(this.log);
    this.isPaused = false;
    this.turn = 0;
    this.pause.hidden = section.dataset.live !== "true";
    this.pause.addEventListener("click", () => {
      this.isPaused = !this.isPaused;
      this.pause.setAttribute("aria-pressed", String(this.isPaused));
      clearTimeout(this.waiting);
      this.turn++; // What is on its way is not waited for: it is asked for again.
      if (!this.isPaused) this.read(this.turn);
    });
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.start(); });
    this.form.addEventListener("change", () => this.start());
    this.form.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.start(), 350);
    });
    this.start();
  }

  start() {
    const asked = JSON.stringify([this.form.replica.value, this.form.search.value]);
    if (asked === this.asked) return;
    this.asked = asked;
    this.after = "";
    this.log.replaceChildren();
    this.read(++this.turn);
  }

  async read(turn) {
    clearTimeout(this.waiting);
    const query = new URLSearchParams({ after: this.after, limit: String(MOST_LINES) });
    if (!this.after && !this.form.search.value) query.set("begin", String(FIRST_LINES));
    if (this.form.replica.value) query.set("replica", this.form.replica.value);
    if (this.form.search.value) query.set("search", this.form.search.value);
    const isLive = this.isLive();
    // A line without an end is only read when nothing more can follow in it.
    query.set("unfinished", String(!isLive));
    let page = null;
    try {
      const answer = await ask(`${this.section.dataset.url}?${query}`);
      if (answer.ok) page = await answer.json();
      else this.say((await answer.json()).detail ?? answer.statusText);
    } catch {
      this.say("…");
    }
    if (turn !== this.turn) return;
    if (page) {
      this.add(page.items);
      this.after = page.after;
      this.say(this.log.childElementCount ? "" : this.section.dataset.none);
    }
    if (page?.is_full) this.read(turn);
    else if (isLive && !this.isPaused) this.waiting = setTimeout(() => this.read(turn), POLL_MS);
  }

  isLive() {
    return this.section.dataset.live === "true" && !document.querySelector("#now [data-final]");
  }

  say(text) {
    this.state.textContent = text;
  }

  add(items) {
    const isAtEnd = this.log.scrollTop + this.log.clientHeight >= this.log.scrollHeight - 30;
    const isOfOne = this.form.replica.value !== "";
    const search = this.form.search.value.toLowerCase();
    const lines = items.slice(-MOST_LINES).map((item) => {
      const line = document.createElement("div");
      if (!isOfOne) {
        const of = document.createElement("span");
        of.className = "of";
        of.textContent = `${item.replica} `;
        line.append(of);
      }
      line.append(...marked(shown(item.text), search), item.is_cut ? "…" : "");
      return line;
    });
    this.log.append(...lines);
    for (let more = this.log.childElementCount - MOST_LINES; more > 0; more--) this.log.firstElementChild.remove();
    if (isAtEnd) this.log.scrollTop = this.log.scrollHeight;
  }
}

function marked(text, search) {
  const at = search ? text.toLowerCase().indexOf(search) : -1;
  if (at < 0) return [text];
  const mark = document.createElement("mark");
  mark.textContent = text.slice(at, at + search.length);
  return [text.slice(0, at), mark, text.slice(at + search.length)];
}
