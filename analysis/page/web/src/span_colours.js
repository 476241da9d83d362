// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Colours of operations: a hue for each microbatch, in two shades for forward and backward.

const communication = new Set([
  "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all", "barrier", "exchange",
  "communication", // several put together
]);
const copies = new Set(["copy", "cast", "advise", "copies"]);

export const isCommunication = (op) => communication.has(op);

/** Of boxes that stand for ops of several classes, communication among them or not. */
export const isMixed = (op) => op === "mixed";

/** Phases that belong to no microbatch. */
export function phaseColour(colours, phase) {
  const dark = colours.name === "dark";
  const named = {
    forward: hue(0, 1, 0, dark),
    backward: hue(0, 1, 1, dark),
    gradient_reduction: colours.parts.transfer,
    optimizer: colours.series[2],
    input: colours.series[4],
    setup: colours.parts.other,
  };
  return named[phase] ?? colours.parts.other;
}

/** Microbatches in order around the circle of hues, from blue over green to violet. */
function hue(index, count, shade, dark) {
  const degrees = (212 + (300 * index) / Math.max(count, 1)) % 360;
  const lightness = dark ? [62, 42][shade] : [46, 70][shade];
  return `hsl(${degrees.toFixed(0)},58%,${lightness}%)`;
}

/** @param {{phase: string, microbatch: number, microbatches: number, op: string, by: string}} of */
export function spanColour(colours, { phase, microbatch, microbatches, op, by }) {
  if (by === "kind") {
    if (isCommunication(op)) return colours.parts.transfer;
    return copies.has(op) ? colours.parts.copies : colours.parts.compute;
  }
  const shade = phase === "backward" ? 1 : 0;
  if (by === "microbatch" && microbatch >= 0 && (phase === "forward" || phase === "backward")) {
    return hue(microbatch, microbatches, shade, colours.name === "dark");
  }
  return phaseColour(colours, phase);
}

/** The colour of a text upon a box. */
export function textColour(colours, phase) {
  const onLight = (phase === "backward") !== (colours.name === "dark");
  return onLight ? "#1c2330" : "#ffffff";
}

const patterns = new Map();
const size = 6; // pixels after which a pattern repeats

/** A fill of diagonal lines: `paint(pen)` lays the ground, `line` is their colour. */
function pattern(key, { line, lineWidth = 1.6 }, paint) {
  if (!patterns.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = size;
    tile.height = size;
    const pen = tile.getContext("2d");
    paint(pen);
    pen.strokeStyle = line;
    pen.lineWidth = lineWidth;
    pen.beginPath();
    for (const shift of [-size, 0, size]) {
      pen.moveTo(shift, size);
      pen.lineTo(shift + size, 0);
    }
    pen.stroke();
    patterns.set(key, { image: tile, repeat: "repeat", imageWidth: size, imageHeight: size });
  }
  return patterns.get(key);
}

/** A fill of diagonal lines in a colour. */
export function striped(colour, background) {
  return pattern(`${colour} ${background}`, { line: colour }, (pen) => {
    pen.fillStyle = background;
    pen.fillRect(0, 0, size, size);
    pen.fillStyle = colour;
    pen.globalAlpha = 0.35;
    pen.fillRect(0, 0, size, size);
    pen.globalAlpha = 1;
  });
}

/** A full fill with thin diagonal lines of another colour. */
export function stripedWith(colour, line) {
  return pattern(`${colour} under ${line}`, { line, lineWidth: 1 }, (pen) => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, size, size);
  });
}
