// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Draws a timeline: boxes of operations with their colours, idle times, lines between
// lanes. `layout` is {rows: [{lane, stream, computes}], first: [row of each lane],
// rowOf: Map "lane stream" -> row}.

const communication = new Set([
  "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all", "barrier", "exchange",
  "communication", // several ops in one box
]);
const copies = new Set(["copy", "cast", "advise", "copies"]);

export const isCommunication = (op) => communication.has(op);

/** Returns the colour of a phase that belongs to no microbatch. */
function phaseColour(colours, phase) {
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

/** Returns the colour of a microbatch, on the circle of hues from blue over green to violet. */
function hue(index, count, shade, dark) {
  const degrees = (212 + (300 * index) / Math.max(count, 1)) % 360;
  const lightness = dark ? [62, 42][shade] : [46, 70][shade];
  return `hsl(${degrees.toFixed(0)},58%,${lightness}%)`;
}

/** @param {{phase: string, microbatch: number, microbatches: number, op: string, by: string}} of */
function spanColour(colours, { phase, microbatch, microbatches, op, by }) {
  if (by === "kind") {
    if (isCommunication(op)) return colours.parts.transfer;
    return copies.has(op) ? colours.parts.copies : colours.parts.compute;
  }
  if (by === "microbatch" && microbatch >= 0 && (phase === "forward" || phase === "backward")) {
    return hue(microbatch, microbatches, phase === "backward" ? 1 : 0, colours.name === "dark");
  }
  return phaseColour(colours, phase);
}

/** Returns the colour of text on a box. */
function textColour(colours, phase) {
  const onLight = (phase === "backward") !== (colours.name === "dark");
  return onLight ? "#1c2330" : "#ffffff";
}

const patterns = new Map();
const size = 6; // pixels after which a pattern repeats

/**
 * Makes a fill of diagonal lines on the colour `ground`, which covers `background` with the opacity
 * `strength`.
 */
function striped({ ground, strength, line, lineWidth, background }) {
  const key = [ground, line, background].join(" ");
  if (!patterns.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const pen = tile.getContext("2d");
    for (const [fill, alpha] of [[background, 1], [ground, strength]]) {
      pen.globalAlpha = alpha;
      pen.fillStyle = fill;
      pen.fillRect(0, 0, size, size);
    }
    Object.assign(pen, { globalAlpha: 1, strokeStyle: line, lineWidth });
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

/** Returns the fill of a box: communication is hatched, and stripes mark several classes of ops. */
function fillOf(op, colour, background, isWide) {
  if (op === "mixed") return striped({ ground: colour, strength: 1, line: background, lineWidth: 1, background });
  if (!isCommunication(op) || !isWide) return colour;
  return striped({ ground: colour, strength: 0.35, line: colour, lineWidth: 1.6, background });
}

/** The names of idle times, by `kind` in details.timeline.idle. */
export const idleNames = ["exposed communication", "gap"];
const idleParts = ["transfer", "gap"];
const tintOpacity = (colours) => (colours.name === "dark" ? 0.28 : 0.2);

/**
 * Makes a series of boxes. Items are [first row, begin, end, last row, ...]; `draw(shape, api)`
 * makes the visible part of a box.
 * @param {{height: number, z: number}} of height: share of a row
 */
function boxes(name, data, { height, draw, ...own }) {
  return {
    type: "custom",
    name,
    data,
    encode: { x: [1, 2], y: [0, 3], tooltip: [] },
    clip: true,
    ...own,
    renderItem({ coordSys: area }, api) {
      const [x, top] = api.coord([api.value(1), api.value(0)]);
      const [end, bottom] = api.coord([api.value(2), api.value(3)]);
      const row = api.size([0, 1])[1] * height;
      const left = Math.max(x, area.x);
      const right = Math.min(Math.max(end, x + 0.6), area.x + area.width);
      return right <= left ? null : draw({ x: left, y: top - row / 2, width: right - left, height: bottom - top + row }, api);
    },
  };
}

/** Draws the operations of a phase. */
export function spanSeries(timeline, layout, phase, colours, state) {
  const { spans } = timeline;
  const microbatches = Math.max(0, ...spans.microbatch) + 1;
  const data = spans.phase.flatMap((at, i) => {
    const row = layout.rowOf.get(`${spans.lane[i]} ${spans.stream[i]}`);
    return at === phase ? [[row, spans.start[i], spans.start[i] + spans.length[i], row, i]] : [];
  });
  const name = timeline.phases[phase];
  return boxes(name.replaceAll("_", " "), data, {
    height: 0.8,
    z: 3,
    itemStyle: { color: phaseColour(colours, name) },
    draw(shape, api) {
      const i = api.value(4);
      const op = timeline.ops[spans.op[i]];
      const number = spans.microbatch[i];
      const colour = spanColour(colours, { phase: name, microbatch: number, microbatches, op, by: state.colour });
      const hasNumber = number >= 0 && !isCommunication(op) && shape.width > 7 + 6 * String(number).length && shape.height > 11;
      return {
        type: "rect",
        shape,
        style: { fill: fillOf(op, colour, colours.background, shape.width > 2), stroke: colours.background, lineWidth: shape.width > 4 ? 0.7 : 0 },
        emphasis: { style: { stroke: colours.text, lineWidth: 1.5 } },
        ...(hasNumber ? {
          textContent: { style: { text: String(number), fill: textColour(colours, name), fontSize: 11 } },
          textConfig: { position: "inside" },
        } : {}),
      };
    },
  });
}

/** Draws the times in which no stream of the lane computes or copies, beneath the lane's boxes. */
export function idleSeries({ idle }, layout, kind, colours) {
  const data = idle.lane.flatMap((lane, i) => {
    const last = (layout.first[lane + 1] ?? layout.rows.length) - 1;
    return idle.kind[i] === kind ? [[layout.first[lane], idle.start[i], idle.start[i] + idle.length[i], last, lane]] : [];
  });
  const colour = colours.parts[idleParts[kind]];
  return boxes(idleNames[kind], data, {
    height: 0.92,
    z: 1,
    itemStyle: { color: `${colour}66` }, // as pale in the legend as in the picture
    draw: (shape) => ({ type: "rect", shape, style: { fill: colour, opacity: tintOpacity(colours) } }),
  });
}

/**
 * Draws idle times on top of boxes that stand for several operations and would hide these times, in
 * the rows that compute.
 */
export function idleWithin({ idle }, layout, colours) {
  const data = idle.lane.flatMap((lane, i) => layout.rows.flatMap((row, at) =>
    (row.lane === lane && row.computes ? [[at, idle.start[i], idle.start[i] + idle.length[i], at, idle.kind[i]]] : [])));
  return boxes("\0idle", data, {
    height: 0.92,
    z: 4,
    silent: true,
    draw: (shape, api) => ({
      type: "group",
      children: [
        { type: "rect", shape, style: { fill: colours.background } },
        { type: "rect", shape, style: { fill: colours.parts[idleParts[api.value(4)]], opacity: tintOpacity(colours) } },
      ],
    }),
  });
}
