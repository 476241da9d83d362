// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Chooses between the light and the dark colours of style.css, and provides those of charts. Lines also differ in their
// symbols.

// The colours are in style.css; of these, charts use the lists and the single colours that are named here.
const lists = ["series", "ramp", "diverging"];
const single = ["background", "text", "faint", "line", "good", "bad", "warn", "ideal"];

/** The parts of a step in drawing order. */
export const partNames = ["compute", "copies", "transfer", "wait", "bubble", "gap", "other"];

/** The symbols of series, all filled: hollow symbols mark points with labels. */
export const symbols = [
  "circle", "rect", "triangle", "diamond",
  "path://M0,0L10,0L5,10Z", // a triangle on its tip
  "path://M3,0H7V3H10V7H7V10H3V7H0V3H3Z", // a plus
  "path://M2,0L5,3L8,0L10,2L7,5L10,8L8,10L5,7L2,10L0,8L3,5L0,2Z", // a cross
  "path://M5,0L6.5,3.4L10,3.8L7.4,6.3L8.1,10L5,8.1L1.9,10L2.6,6.3L0,3.8L3.5,3.4Z", // a star
];

/** Returns black or white, whichever is easier to read on a colour (relative luminance of WCAG 2). */
export function ink(hex) {
  const channel = (at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5) > 0.179 ? "#10151e" : "#ffffff";
}

const choices = ["auto", "light", "dark"];
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = [];
let chosen = "auto";
let printing = false;

const nameNow = () => (!printing && (chosen === "dark" || (chosen === "auto" && prefersDark.matches)) ? "dark" : "light");

/** Returns the colours in use now; `parts` maps each part of a step to its colour. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const valueOf = (name) => style.getPropertyValue(`--${name}`).trim();
  const named = (names, of = valueOf) => Object.fromEntries(names.map((name) => [name, of(name)]));
  return { name: nameNow(), ...named(single), ...named(lists, (name) => valueOf(name).split(" ")), parts: named(partNames) };
}

export const onThemeChange = (listener) => listeners.push(listener);

function apply() {
  document.documentElement.dataset.theme = nameNow();
  for (const listener of listeners) listener();
}

/** Switches from auto to light, to dark and back to auto; returns the new theme. */
export function nextTheme() {
  chosen = choices[(choices.indexOf(chosen) + 1) % choices.length];
  apply();
  return chosen;
}

/** Uses the light theme for printing, since paper is white. */
export function setPrinting(on) {
  printing = on;
  document.documentElement.toggleAttribute("data-printing", on);
  apply();
}

prefersDark.addEventListener("change", apply);
document.documentElement.dataset.theme = nameNow();
