// Asks the trainers of a job for a trace, says how many have answered, and shows what they have traced.

import { ask } from "./asking.js";

const POLL_MS = 1000, WAIT_MS = 65_000;
// So long trainers may take to trace a step of their session before TensorFlow's profiler is asked, and so long
// that looks then. Both as `paceline trace` has it.
const SESSION_MS = 3000, PROFILE_MS = 1000;
// All have answered who will, when for so many looks no further one has: a server takes some to write a profile.
const QUIET = 6, QUIET_PROFILED = 15;

export function follow() {
  document.body.addEventListener("click", (event) => {
    const button = event.target.closest(".trace button");
    if (button) take(button.closest(".trace"), button);
  });
}

async function answered(request) {
  const answer = await request;
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail ?? answer.statusText);
  return answer.json();
}

async function take(section, button) {
  const { url, waiting, done, failed } = section.dataset;
  const progress = section.querySelector("progress"), said = section.querySelector("[role=status]");
  const headers = { "Content-Type": "application/json" };
  const post = (body) => answered(ask(url, { method: "POST", headers, body: JSON.stringify(body) }));
  button.disabled = true;
  progress.hidden = false;
  try {
    const began = Date.now(), { name } = await post({});
    const replicas = [...document.querySelectorAll("#replicas tbody th")];
    const trainers = replicas.filter((each) => /^(chief|worker)-/.test(each.textContent)).length;
    let files = 0, trace = null, profiled = false;
    for (let quiet = 0; Date.now() - began < WAIT_MS && quiet < (profiled ? QUIET_PROFILED : QUIET); ) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      const { items } = await answered(ask(url));
      const found = items.find((each) => each.name === name)?.files.length ?? 0;
      quiet = found && found === files && (profiled || trace?.trainers.length) ? quiet + 1 : 0;
      if (found !== files) trace = await answered(ask(`${url}/${name}`));
      files = found;
      said.textContent = `${trace?.trainers.length ?? 0} ${waiting}`;
      if (trace?.trainers.length >= trainers) break;
      if (!profiled && !trace?.trainers.length && Date.now() - began > SESSION_MS) {
        await post({ name, profile_milliseconds: PROFILE_MS });
        profiled = true;
      }
    }
    if (!trace?.trainers.length) throw new Error([failed, ...new Set(Object.values(trace?.refused ?? {}))].join(" "));
    said.textContent = done;
    document.body.dispatchEvent(new Event("traced"));
  } catch (error) {
    said.textContent = error.message;
  } finally {
    button.disabled = false;
    progress.hidden = true;
  }
}
