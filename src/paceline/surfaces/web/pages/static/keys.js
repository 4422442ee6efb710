// Keys of every page: "/" goes to the search, "j" and "k" go through the rows, "?" says which keys there are.

const rows = () => [...document.querySelectorAll("table.jobs tbody tr a:first-of-type, ol.rows > li a:first-of-type")];

function move(by) {
  const links = rows();
  if (!links.length) return false;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.max(0, Math.min(links.length - 1, at + by));
  links[next].focus();
  links[next].scrollIntoView({ block: "nearest" });
  return true;
}

const actions = {
  "/": () => {
    const search = document.querySelector("input[type=search]");
    search?.focus();
    search?.select();
    return Boolean(search);
  },
  "j": () => move(1),
  "k": () => move(-1),
  "ArrowDown": () => rows().includes(document.activeElement) && move(1),
  "ArrowUp": () => rows().includes(document.activeElement) && move(-1),
  "p": () => {
    const pause = document.querySelector("button.pause:not([hidden])");
    pause?.click();
    return Boolean(pause);
  },
  "?": () => {
    const list = document.getElementById("keys");
    if (!list.open) list.showModal();
    return true;
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, dialog")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (actions[event.key]?.()) event.preventDefault();
});
