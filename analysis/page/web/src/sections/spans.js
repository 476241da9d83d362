// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The drawing of a timeline: boxes of operations with their colours, idle times, lines between
// lanes. `layout` is {rows: [{lane, stream, computes}], first: [row of each lane],
// rowOf: Map "lane stream" -> row}.

const communication = new Set([
  "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all", "barrier", "exchange",
  "communication", // several ops in one box
]);
const copies = new Set(["copy", "cast", "advise", "copies"]);

export const isCommunication = (op) => communication.has(op);

/** True for boxes that stand for ops of several classes. */
export const isMixed = (op) => op === "mixed";

/** Returns the colour of a phase that belongs to no microbatch. */
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

/** Places microbatches in order on the circle of hues, from blue over green to violet. */
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

/** Returns the colour of text on a box. */
export function textColour(colours, phase) {
  const onLight = (phase === "backward") !== (colours.name === "dark");
  return onLight ? "#1c2330" : "#ffffff";
}

const patterns = new Map();
const size = 6; // pixels after which a pattern repeats

/**
 * Makes a fill of diagonal lines: `paint(pen)` draws the ground, and `line` is the lines' colour.
 */
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

/** Makes a fill of diagonal lines in a colour. */
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

/** Makes a solid fill with thin diagonal lines of another colour. */
export function stripedWith(colour, line) {
  return pattern(`${colour} under ${line}`, { line, lineWidth: 1 }, (pen) => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, size, size);
  });
}

/** The names of idle times, by `kind` in details.timeline.idle. */
export const idleNames = ["exposed communication", "gap"];
const idleParts = ["transfer", "gap"];

/** Returns the part of a box that is within the picture; null if there is none. */
function clipped(x, y, width, height, area) {
  const left = Math.max(x, area.x);
  const right = Math.min(x + width, area.x + area.width);
  return right <= left ? null : { x: left, y, width: right - left, height };
}

export function spanSeries(timeline, layout, phase, colours, state) {
  const { spans } = timeline;
  const microbatches = Math.max(0, ...spans.microbatch) + 1;
  const data = [];
  spans.phase.forEach((at, i) => {
    if (at !== phase) return;
    const row = layout.rowOf.get(`${spans.lane[i]} ${spans.stream[i]}`);
    data.push([row, spans.start[i], spans.start[i] + spans.length[i], i]);
  });
  const name = timeline.phases[phase];
  const shown = name.replaceAll("_", " ");
  return {
    type: "custom",
    name: shown,
    data,
    encode: { x: [1, 2], y: 0, tooltip: [] },
    itemStyle: { color: phaseColour(colours, name) },
    clip: true,
    progressive: 0,
    z: 3,
    renderItem(params, api) {
      const i = api.value(3);
      const [x, middle] = api.coord([api.value(1), api.value(0)]);
      const end = api.coord([api.value(2), api.value(0)])[0];
      const height = api.size([0, 1])[1] * 0.8;
      const shape = clipped(x, middle - height / 2, Math.max(end - x, 0.6), height, params.coordSys);
      if (!shape) return null;
      const communication = isCommunication(timeline.ops[spans.op[i]]);
      const mixed = isMixed(timeline.ops[spans.op[i]]);
      const colour = spanColour(colours, {
        phase: name, microbatch: spans.microbatch[i], microbatches, op: timeline.ops[spans.op[i]], by: state.colour,
      });
      const box = {
        type: "rect",
        shape,
        style: {
          fill: mixed ? stripedWith(colour, colours.background) : communication && shape.width > 2 ? striped(colour, colours.background) : colour,
          stroke: colours.background,
          lineWidth: shape.width > 4 ? 0.7 : 0,
        },
        emphasis: { style: { stroke: colours.text, lineWidth: 1.5 } },
      };
      const number = spans.microbatch[i];
      if (number >= 0 && !communication && shape.width > 7 + 6 * String(number).length && height > 11) {
        box.textContent = { style: { text: String(number), fill: textColour(colours, name), fontSize: 11 } };
        box.textConfig = { position: "inside" };
      }
      return box;
    },
  };
}

/**
 * Draws the idle times that boxes for several operations would hide on top of these boxes, in the
 * rows that compute.
 */
export function idleWithin(timeline, layout, colours) {
  const { idle } = timeline;
  const data = idle.lane.flatMap((lane, i) =>
    layout.rows.flatMap((row, at) => (row.lane === lane && row.computes ? [[at, idle.start[i], idle.start[i] + idle.length[i], idle.kind[i]]] : [])));
  return {
    type: "custom",
    name: "\0idle",
    data,
    encode: { x: [1, 2], y: 0, tooltip: [] },
    silent: true,
    clip: true,
    progressive: 0,
    z: 4,
    renderItem(params, api) {
      const [x, middle] = api.coord([api.value(1), api.value(0)]);
      const end = api.coord([api.value(2), api.value(0)])[0];
      const height = api.size([0, 1])[1] * 0.92;
      const shape = clipped(x, middle - height / 2, end - x, height, params.coordSys);
      if (!shape) return null;
      const tint = colours.parts[idleParts[api.value(3)]];
      return {
        type: "group",
        children: [
          { type: "rect", shape, style: { fill: colours.background } },
          { type: "rect", shape, style: { fill: tint, opacity: tintOpacity(colours) } },
        ],
      };
    },
  };
}

const tintOpacity = (colours) => (colours.name === "dark" ? 0.28 : 0.2);

/** Draws the times when no stream of the lane computes or copies, below the lane's boxes. */
export function idleSeries(timeline, layout, kind, colours) {
  const { idle } = timeline;
  const data = [];
  idle.lane.forEach((lane, i) => {
    if (idle.kind[i] !== kind) return;
    const first = layout.first[lane];
    const last = (layout.first[lane + 1] ?? layout.rows.length) - 1;
    data.push([first, idle.start[i], idle.start[i] + idle.length[i], last, lane]);
  });
  const colour = colours.parts[idleParts[kind]];
  return {
    type: "custom",
    name: idleNames[kind],
    data,
    encode: { x: [1, 2], y: [0, 3], tooltip: [] },
    itemStyle: { color: `${colour}66` }, // as pale in the legend as in the picture
    clip: true,
    progressive: 0,
    z: 1,
    renderItem(params, api) {
      const [x, top] = api.coord([api.value(1), api.value(0)]);
      const [end, bottom] = api.coord([api.value(2), api.value(3)]);
      const row = api.size([0, 1])[1];
      const shape = clipped(x, top - row * 0.46, end - x, bottom - top + row * 0.92, params.coordSys);
      return shape && { type: "rect", shape, style: { fill: colour, opacity: tintOpacity(colours) } };
    },
  };
}

/** Draws lines between the lanes. */
export function laneLines(layout, colours) {
  return {
    type: "custom",
    name: "\0lanes",
    silent: true,
    z: 2,
    data: layout.first.slice(1).map((row) => [row, 0]),
    encode: { y: 0, x: 1, tooltip: [] },
    renderItem(params, api) {
      const y = api.coord([0, api.value(0)])[1] - api.size([0, 1])[1] / 2;
      const { x, width } = params.coordSys;
      return { type: "line", shape: { x1: x, x2: x + width, y1: y, y2: y }, style: { stroke: colours.line, lineWidth: 1 } };
    },
  };
}
