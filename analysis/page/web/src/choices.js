// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Holds the reader's choices for the whole page: the light or dark theme, whose colours charts use, and the filter: the curve and
// the rank count that all sections show. The address has the filter after the section's name: page.html#timeline?curve=dp&ranks=4.

// The colours are in style.css; of these, charts use the lists and the single colours that are named here.
const lists = ["series", "ramp", "diverging"];
const single = ["background", "text", "faint", "line", "good", "bad", "warn", "ideal"];
/** The parts of a step in drawing order. */
export const partNames = ["compute", "copies", "transfer", "wait", "bubble", "gap", "other"];

const themes = ["auto", "light", "dark"];
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const onTheme = [];
let themeChoice = "auto";
let printing = false;

const nameNow = () => (!printing && (themeChoice === "dark" || (themeChoice === "auto" && prefersDark.matches)) ? "dark" : "light");

/** Returns the colours in use now; `parts` maps each part of a step to its colour. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const valueOf = (name) => style.getPropertyValue(`--${name}`).trim();
  const named = (names, of = valueOf) => Object.fromEntries(names.map((name) => [name, of(name)]));
  return { name: nameNow(), ...named(single), ...named(lists, (name) => valueOf(name).split(" ")), parts: named(partNames) };
}

export const onThemeChange = (listener) => onTheme.push(listener);

function apply() {
  document.documentElement.dataset.theme = nameNow();
  for (const listener of onTheme) listener();
}

/** Switches from auto to light, to dark and back to auto; returns the new theme. */
export function nextTheme() {
  themeChoice = themes[(themes.indexOf(themeChoice) + 1) % themes.length];
  apply();
  return themeChoice;
}

/** Uses the light theme for printing, since paper is white. */
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
/** Returns the name of the section in the address; "" without one. */
export const sectionInAddress = () => partsOf()[0];

function writeAddress() {
  const filter = String(chosen);
  if (filter !== (partsOf()[1] ?? "")) history.replaceState(null, "", `#${partsOf()[0]}?${filter}`);
}

export const filter = {
  /** Returns the chosen curve's name or rank count as text; null if the reader chose none. */
  get: (key) => chosen.get(key),
  set(changes) {
    for (const [key, value] of Object.entries(changes)) chosen.set(key, value);
    writeAddress();
    tellAll();
  },
  onChange: (listener) => onFilter.push(listener),
};

window.addEventListener("hashchange", () => {
  // A link to a section has no filter: the reader's choice is kept and added to the address again.
  const [, query] = partsOf();
  if (query === undefined) {
    if (String(chosen) !== "") writeAddress();
  } else if (query !== String(chosen)) {
    chosen = new URLSearchParams(query);
    tellAll();
  }
});
