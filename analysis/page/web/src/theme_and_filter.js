// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Holds the reader's choices for the whole page. One is the light or dark theme, which sets the
// colours of charts. The other is the filter: the curve and the rank count that all sections show.
// In the page's address, the filter follows the section's name:
// page.html#timeline?curve=dp&ranks=4.

// The names of the colours in style.css that charts use.
const single = ["background", "text", "faint", "line", "good", "bad", "warn", "ideal"];
/** The parts of a step, in the order in which they are drawn. */
export const partNames = ["compute", "copies", "transfer", "wait", "bubble", "gap", "other"];

const themes = ["auto", "light", "dark"];
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const onTheme = [];
let themeChoice = "auto";
let printing = false;

const nameNow = () => (!printing && (themeChoice === "dark" || (themeChoice === "auto" && prefersDark.matches)) ? "dark" : "light");

/** Returns the current theme's colours; `parts` maps each part of a step to its colour. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const valueOf = (name) => style.getPropertyValue(`--${name}`).trim();
  const named = (names, of = valueOf) => Object.fromEntries(names.map((name) => [name, of(name)]));
  return { name: nameNow(), ...named(single), ...named(["series", "ramp", "diverging"], (name) => valueOf(name).split(" ")), parts: named(partNames) };
}

export const onThemeChange = (listener) => onTheme.push(listener);

function apply() {
  document.documentElement.dataset.theme = nameNow();
  for (const listener of onTheme) listener();
}

/** Switches to the next theme of auto, light, dark, auto; returns its name. */
export function nextTheme() {
  themeChoice = themes[(themes.indexOf(themeChoice) + 1) % themes.length];
  apply();
  return themeChoice;
}

/** Switches the light theme on for printing, since paper is white, and off afterwards. */
export function setPrinting(on) {
  printing = on;
  document.documentElement.toggleAttribute("data-printing", on);
  apply();
}

prefersDark.addEventListener("change", apply);
document.documentElement.dataset.theme = nameNow();

const partsOf = () => location.hash.slice(1).split("?");
let chosen = new URLSearchParams(partsOf()[1] ?? "");
const onFilter = [];
const tellAll = () => onFilter.forEach((listener) => listener());
/** Returns the name of the section in the page's address; "" if there is none. */
export const sectionInAddress = () => partsOf()[0];

function writeAddress() {
  const filter = String(chosen);
  if (filter !== (partsOf()[1] ?? "")) history.replaceState(null, "", `#${partsOf()[0]}?${filter}`);
}

export const filter = {
  /** Returns the name of the chosen curve, or the chosen rank count as text; null if none is. */
  get: (key) => chosen.get(key),
  set(changes) {
    for (const [key, value] of Object.entries(changes)) chosen.set(key, value);
    writeAddress();
    tellAll();
  },
  onChange: (listener) => onFilter.push(listener),
};

window.addEventListener("hashchange", () => {
  // A link to a section has no filter. The reader's choice then stays, and is added to the address.
  const [, query] = partsOf();
  if (query === undefined) {
    if (String(chosen) !== "") writeAddress();
  } else if (query !== String(chosen)) {
    chosen = new URLSearchParams(query);
    tellAll();
  }
});
