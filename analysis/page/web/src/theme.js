// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Defines the colours, light and dark. Series colours can be told apart with the common colour
// blindnesses (Okabe and Ito's set, adjusted in lightness); lines also differ in their symbols.

/** Colours that only charts have; style.css has all others, which the page uses too. */
const ofCharts = {
  light: {
    ideal: "#8a93a5",
    series: ["#0072b2", "#d55e00", "#009e73", "#b5569a", "#8a6d00", "#3d9bd1", "#7a3b00", "#5d5d5d", "#4b4ba6", "#2f6b2f"],
    ramp: ["#f4f7fb", "#8fb8dc", "#2a6fb0", "#0b2f57"],
    diverging: ["#2a6fb0", "#f4f7fb", "#c8452f"],
  },
  dark: {
    ideal: "#7d889b",
    series: ["#56b4e9", "#ff9248", "#2fc795", "#e08fc4", "#d9bf45", "#9ad0f5", "#c98f5b", "#b5b5b5", "#9d9df0", "#7fc47f"],
    ramp: ["#1a2230", "#245a8d", "#4fa3df", "#d8efff"],
    diverging: ["#4fa3df", "#1a2230", "#ff7a55"],
  },
};
const ofPage = ["background", "text", "faint", "line", "good", "bad", "warn"];
const ofParts = ["compute", "copies", "transfer", "wait", "bubble", "gap", "other"];

/** The symbols of series, all filled: hollow symbols mark points with labels. */
export const symbols = [
  "circle", "rect", "triangle", "diamond",
  "path://M0,0L10,0L5,10Z", // a triangle on its tip
  "path://M3,0H7V3H10V7H7V10H3V7H0V3H3Z", // a plus
  "path://M2,0L5,3L8,0L10,2L7,5L10,8L8,10L5,7L2,10L0,8L3,5L0,2Z", // a cross
  "path://M5,0L6.5,3.4L10,3.8L7.4,6.3L8.1,10L5,8.1L1.9,10L2.6,6.3L0,3.8L3.5,3.4Z", // a star
];

const choices = ["auto", "light", "dark"];
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = [];
let chosen = "auto";
let printing = false;

const nameNow = () => (!printing && (chosen === "dark" || (chosen === "auto" && prefersDark.matches)) ? "dark" : "light");

/** Returns the colours in use now; `parts` maps each part of a step to its colour. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const named = (names) => Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  const { theme: name } = document.documentElement.dataset;
  return { name, ...ofCharts[name], ...named(ofPage), parts: named(ofParts) };
}

export function onThemeChange(listener) {
  listeners.push(listener);
}

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
