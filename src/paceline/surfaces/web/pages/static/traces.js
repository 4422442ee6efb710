// Asks the trainers of a job for a trace, says how many have answered, and shows what they have traced.

const POLL_MS = 1000, WAIT_MS = 65_000;

export function follow() {
  document.body.addEventListener("click", (event) => {
    const button = event.target.closest(".trace button");
    if (button) take(button.closest(".trace"), button);
  });
}

async function take(section, button) {
  const { url, waiting, done, failed } = section.dataset;
  const progress = section.querySelector("progress"), said = section.querySelector("[role=status]");
  button.disabled = true;
  progress.hidden = false;
  const problem = async (answer) => (await answer.json().catch(() => ({}))).detail ?? answer.statusText;
  try {
    const asked = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
    if (!asked.ok) throw new Error(await problem(asked));
    const { name } = await asked.json();
    const trainers = document.querySelectorAll("#replicas tbody th").length;
    let found = 0, quiet = 0;
    for (const until = Date.now() + WAIT_MS; Date.now() < until && quiet < 6; ) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      const answer = await fetch(url);
      if (!answer.ok) throw new Error(await problem(answer));
      const files = (await answer.json()).items.find((each) => each.name === name)?.files.length ?? 0;
      // All have answered who will, when for some seconds no further one has.
      quiet = files === found && found > 0 ? quiet + 1 : 0;
      found = files;
      said.textContent = `${found} ${waiting}`;
      if (found >= trainers) break;
    }
    if (!found) throw new Error(failed);
    said.textContent = done;
    document.body.dispatchEvent(new Event("traced"));
  } catch (error) {
    said.textContent = error.message;
  } finally {
    button.disabled = false;
    progress.hidden = true;
  }
}
