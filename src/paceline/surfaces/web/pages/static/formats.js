// Numbers as people read them, and the colours of the theme.

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
    if (size >= limit * 0.99995) return trimmed(value / (unit === "k" ? 1e3 : limit), digits) + unit;
  return trimmed(value, digits);
}

const trimmed = (value, digits) => String(Number(value.toPrecision(digits)));

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let place = 0;
  for (; Math.abs(value) >= 999.5 && place < units.length - 1; place++) value /= 1024;
  return `${trimmed(value, 3)} ${units[place]}`;
}

export const share = (value) => `${(value * 100).toFixed(value > 0 && value < 0.0995 ? 1 : 0)} %`;

const UNITS = {
  cores: (value) => `${value.toFixed(value < 9.995 ? 2 : 1)} ${document.querySelector("[data-cores]").dataset.cores}`,
  bytes,
  bytes_per_second: (value) => `${bytes(value)}/s`,
  share,
};

export const withUnit = (value, unit) => UNITS[unit](value);

export const clock = (at) => new Date(at * 1000).toISOString().slice(11, 19);

// Custom properties hold light-dark(...): only a real property tells which of the two is meant.
const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);

export function colour(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

export function isDark() {
  if (printing) return false;
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

let printing = false;
const listeners = [];
export const onLook = (draw) => listeners.push(draw);
const redraw = () => listeners.forEach((draw) => draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
for (const [event, is] of [["beforeprint", true], ["afterprint", false]])
  addEventListener(event, () => { printing = is; redraw(); });
