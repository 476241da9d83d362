// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Draws the timeline of one traced step: a lane for each rank, with a row for each of its streams,
// and a box for each operation.
import { columns, groupBy, isNarrow, joined, lined, missing, percent, pointContent, pointTip, rankCount, seconds } from "../reexports.js";
import { linesBefore } from "./rank_heat_maps.js";

const communication = new Set([
  "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all", "barrier", "exchange",
  "communication", // several ops in one box
]);
const copies = new Set(["copy", "cast", "advise", "copies"]);
const isDark = (colours) => colours.name === "dark";

/** Returns the colour of a microbatch: from blue over violet, red and yellow to green. */
function hue(colours, phase, index = 0, count = 1) {
  const degrees = (212 + (300 * index) / Math.max(count, 1)) % 360;
  const [forward, backward] = isDark(colours) ? [62, 42] : [46, 70];
  return `hsl(${degrees.toFixed(0)},58%,${phase === "backward" ? backward : forward}%)`;
}

/** Returns the colour of a phase, for operations that belong to no microbatch. */
function phaseColour(colours, phase) {
  const named = {
    forward: hue(colours, phase), backward: hue(colours, phase), gradient_reduction: colours.parts.transfer,
    optimizer: colours.series[2], input: colours.series[4], setup: colours.parts.other,
  };
  return named[phase] ?? colours.parts.other;
}

/** Returns the colour of an operation, chosen `by` its "kind", "phase" or "microbatch". */
function spanColour(colours, { phase, microbatch, microbatches, op, by }) {
  if (by === "kind") return colours.parts[communication.has(op) ? "transfer" : copies.has(op) ? "copies" : "compute"];
  const hasHue = by === "microbatch" && microbatch !== null && (phase === "forward" || phase === "backward");
  return hasHue ? hue(colours, phase, microbatch, microbatches) : phaseColour(colours, phase);
}

const textColour = (colours, phase) => ((phase === "backward") !== isDark(colours) ? "#1c2330" : "#ffffff");
const patterns = new Map();
const size = 6; // pixels after which a pattern repeats

/** Makes diagonal lines in the colour `line` on the colour `ground` of opacity `strength`. */
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

/** Returns the fill of a box: hatched for communication if it is wide, striped for "mixed". */
function fillOf(op, colour, background, isWide) {
  if (op === "mixed") return striped({ ground: colour, strength: 1, line: background, lineWidth: 1, background });
  if (!communication.has(op) || !isWide) return colour;
  return striped({ ground: colour, strength: 0.35, line: colour, lineWidth: 1.6, background });
}

/** The names of kinds of idle time; the index is `kind` in details.timeline.idle. */
const idleNames = ["exposed communication", "gap"];
const idleParts = ["transfer", "gap"];
const tint = (colours, kind) => ({ fill: colours.parts[idleParts[kind]], opacity: isDark(colours) ? 0.28 : 0.2 });

/** Makes boxes from items [first row, begin, end, last row, ...]. draw(shape, api) draws the
 * visible part of a box; `height` is the height of a box in one row, as a share of the row. */
const boxes = (name, data, { height, draw, ...own }) => ({
  type: "custom", name, data, encode: { x: [1, 2], y: [0, 3], tooltip: [] }, clip: true, ...own,
  renderItem({ coordSys: area }, api) {
    const [x, top] = api.coord([api.value(1), api.value(0)]);
    const [end, bottom] = api.coord([api.value(2), api.value(3)]);
    const row = api.size([0, 1])[1] * height;
    const left = Math.max(x, area.x);
    const right = Math.min(Math.max(end, x + 0.6), area.x + area.width);
    return right <= left ? null : draw({ x: left, y: top - row / 2, width: right - left, height: bottom - top + row }, api);
  },
});

function spanSeries(items, phase, colours, by) {
  const microbatches = Math.max(0, ...items.map(({ microbatch }) => microbatch)) + 1;
  const data = items.flatMap((at, i) =>
    (at.phase === phase ? [[at.row, at["start / ns"], at["start / ns"] + at["length / ns"], at.row, i]] : []));
  const draw = (shape, api) => {
    const { operation: op, microbatch } = items[api.value(4)];
    const colour = spanColour(colours, { phase, microbatch, microbatches, op, by });
    const hasNumber = microbatch !== null && !communication.has(op) && shape.width > 7 + 6 * String(microbatch).length && shape.height > 11;
    return {
      type: "rect", shape,
      style: { fill: fillOf(op, colour, colours.background, shape.width > 2), stroke: colours.background, lineWidth: shape.width > 4 ? 0.7 : 0 },
      emphasis: { style: { stroke: colours.text, lineWidth: 1.5 } },
      ...(hasNumber ? {
        textContent: { style: { text: String(microbatch), fill: textColour(colours, phase), fontSize: 11 } }, textConfig: { position: "inside" },
      } : {}),
    };
  };
  return boxes(phase.replaceAll("_", " "), data, { height: 0.8, z: 3, itemStyle: { color: phaseColour(colours, phase) }, draw });
}

/** Draws the times in which no stream of a lane computes or copies, behind the lane's boxes. */
function idleSeries({ idle }, layout, kind, colours) {
  const data = idle.lane.flatMap((lane, i) => {
    const last = (layout.first[lane + 1] ?? layout.rows.length) - 1;
    return idle.kind[i] === kind ? [[layout.first[lane], idle.start[i], idle.start[i] + idle.length[i], last, lane]] : [];
  });
  const pale = `${tint(colours, kind).fill}66`; // with an opacity of 40% (hex 66), for the legend
  return boxes(idleNames[kind], data, {
    height: 0.92, z: 1, itemStyle: { color: pale }, draw: (shape) => ({ type: "rect", shape, style: tint(colours, kind) }),
  });
}

/** Draws idle times in front of boxes that stand for several operations and would hide them. */
function idleWithin({ idle, lanes }, { rows }, colours) {
  const data = idle.lane.flatMap((lane, i) => rows.flatMap((row, at) =>
    (row.lane === lanes[lane] && row.computes ? [[at, idle.start[i], idle.start[i] + idle.length[i], at, idle.kind[i]]] : [])));
  const rect = (shape, style) => ({ type: "rect", shape, style });
  const draw = (shape, api) =>
    ({ type: "group", children: [rect(shape, { fill: colours.background }), rect(shape, tint(colours, api.value(4)))] });
  return boxes("\0idle", data, { height: 0.92, z: 4, silent: true, draw });
}

const nano = (value) => seconds(value * 1e-9);

/** Makes a row for each used stream of a lane, and stores its number in the row's items as `row`.
 * `first` has the number of each lane's first row, and `computes` is true for a row with other
 * operations than communication. */
function rowsOf({ lanes }, items) {
  const ofLanes = groupBy(items, ({ of }) => of);
  const rows = [];
  const first = lanes.map((lane) => {
    const streams = [...groupBy(ofLanes.get(lane) ?? [], ({ index }) => index)].sort(([a], [b]) => a - b);
    const start = rows.length;
    for (const [index, spans] of streams.length > 0 ? streams : [[0, []]]) {
      for (const span of spans) span.row = rows.length;
      rows.push({ lane, computes: spans.some(({ operation }) => !communication.has(operation)), own: streams.length > 1 ? lane.streams[index] : "" });
    }
    return start;
  });
  return { rows, first };
}

function laneTitle(lane) {
  const at = Object.entries(lane.coordinates ?? {}).map(([axis, index]) => `${axis} ${index}`).join(", ");
  const rank = `rank ${lane.world_rank}`;
  return `${lane.label === rank ? rank : `${lane.label}, ${rank}`} on ${lane.host}${at ? ` (${at})` : ""}`;
}

const place = (value) => (value >= 0 ? value : null);

/** Returns the operations of a timeline as items; `index` is the stream's number in its lane. */
const spansOf = ({ spans, lanes, ops, phases }) => spans.lane.map((l, i) => ({
  lane: lanes[l].label, of: lanes[l], rank: lanes[l].world_rank, stream: lanes[l].streams[spans.stream[i]], index: spans.stream[i],
  operation: ops[spans.op[i]], phase: phases[spans.phase[i]], microbatch: place(spans.microbatch[i]), layer: place(spans.layer[i]),
  "start / ns": spans.start[i], "length / ns": spans.length[i],
}));

const during = (lane, start, length) => `${laneTitle(lane)}\nfrom ${nano(start)}, for ${nano(length)}`;

function spanText(at) {
  const part = (name) => at[name] !== null && `${name} ${at[name]}`;
  return `${joined([at.operation, at.phase.replaceAll("_", " "), part("microbatch"), part("layer")])}\n` +
    during(at.of, at["start / ns"], at["length / ns"]);
}

function noteOf(timeline) {
  // The chart covers the time from the first start to the last end of any rank.
  const [time, width] = [timeline.step_time, timeline.length].map(seconds);
  const mixed = timeline.ops.includes("mixed") ? "; full with stripes: communication drawn together with other work" : "";
  return `${joined([
    `Step ${timeline.step}, ${time}${time === width ? "" : `; drawn over ${width}: ranks begin at different times`}`,
    `Numbers: microbatches; hatched: communication${mixed}; tinted: nothing computes or copies; empty at the ends: a rank begins later or is done`,
    timeline.merged > 0 && `${timeline.merged} operations drawn together with their neighbours`,
    timeline.spans_left_out > 0 && `${timeline.spans_left_out} short operations are left out`,
    timeline.left_out > 0 && `${timeline.left_out} more traced ranks are not shown (report --trace FILE.json writes them)`], ". ")}. Ctrl and wheel, the slider, or + and - zoom.`;
}

/** Makes the axis of lanes; if rows are too many to label, only each lane's first row is. */
function laneAxis({ rows, first }, isCrowded) {
  const nameOf = ({ lane: { label }, own }, isFirst) => {
    if (!own) return label;
    if (isNarrow() || isCrowded) return isFirst ? label : "";
    return isFirst ? `${label}  ${own}` : own;
  };
  return {
    type: "category", data: rows.map((_, i) => String(i)), inverse: true,
    axisLabel: {
      interval: (i) => !isCrowded || first.includes(i), width: isNarrow() ? 70 : 190, overflow: "truncate",
      formatter: (_, i) => nameOf(rows[i], first.includes(i)),
    },
  };
}

function zoomOf(colours) {
  const shared = { xAxisIndex: 0, filterMode: "weakFilter", minSpan: 0.02 };
  return [
    { type: "inside", zoomOnMouseWheel: "ctrl", ...shared },
    {
      type: "slider", ...shared, bottom: 2, height: 16, showDataShadow: false, showDetail: false, brushSelect: false,
      borderColor: colours.line, fillerColor: colours.ramp[1] + "33", handleStyle: { color: colours.background, borderColor: colours.faint },
    },
  ];
}

function stepChart(timeline, point) {
  const items = spansOf(timeline);
  const layout = rowsOf(timeline, items);
  const rowHeight = layout.rows.length <= 12 ? 30 : Math.max(9, 520 / layout.rows.length);
  return {
    id: "timeline-step", title: `One step on ${rankCount(point.ranks)}`, note: noteOf(timeline),
    switches: [{ name: "colour", label: "colour by", choices: [...(items.some(({ microbatch }) => microbatch !== null) ? ["microbatch"] : []), "phase", "kind"] }],
    height: Math.round(layout.rows.length * rowHeight) + 110,
    table: { columns: columns("", "lane, rank:count, stream, operation, phase, microbatch:count, layer:count, start / ns:count, length / ns:count"), items },
    option: (colours, state) => ({
      grid: { bottom: 58, top: 8, right: 20 },
      xAxis: { min: 0, max: Math.round(timeline.length * 1e9), name: "time in the step", nameGap: 24, format: nano, splitLine: { show: false } },
      yAxis: laneAxis(layout, rowHeight < 15),
      dataZoom: zoomOf(colours),
      tip: ({ seriesName, value: [, start, end, , at] }) =>
        lined(idleNames.includes(seriesName) ? `${seriesName}\n${during(timeline.lanes[at], start, end - start)}` : spanText(items[at]), pointTip(point)),
      series: [
        ...[0, 1].filter((kind) => timeline.idle.kind.includes(kind)).map((kind) => idleSeries(timeline, layout, kind, colours)),
        ...timeline.phases.map((phase) => spanSeries(items, phase, colours, state.colour)).filter(({ data }) => data.length > 0),
        ...(timeline.merged > 0 ? [idleWithin(timeline, layout, colours)] : []),
        linesBefore(layout.first.slice(1), "lanes", { stroke: colours.line }, "y", 2),
      ],
    }),
  };
}

/** Tells how much of the lanes' time is idle; operations that are not drawn count, too. */
function idleText({ totals, breakdown }) {
  // Shares are of the sum of the ranks' own steps, not of the time that is drawn.
  const [whole, exposed, gap] = [totals.step, totals.exposed, totals.gap].map((values) => values.reduce((all, value) => all + value, 0));
  const share = (value, of) => (of > 0 ? percent(value / of) : missing);
  const waits = breakdown?.wait_known && breakdown.bubble_known;
  const step = `Nothing computes or copies in ${share(exposed + gap, whole)} of these lanes' time: ` +
    `${share(exposed, whole)} exposed communication${waits ? "" : " or waiting"}, ${share(gap, whole)} gap.`;
  if (!waits) return step;
  const { transfer, wait, bubble, steps } = breakdown;
  const part = (value) => share(value, breakdown.step);
  const over = steps === 1 ? "The exposed communication is" : `Over ${steps} traced steps these ranks' exposed communication is`;
  return `${step} ${over} ${part(transfer)} transfer, ${part(wait)} wait and ${part(bubble)} bubble.`;
}

export const timelineBlocks = ({ curves }) => [pointContent(curves, (details) => details.timeline, (point) => {
  const { timeline } = point.details;
  return timeline ? [{ saying: idleText(timeline) }, { chart: stepChart(timeline, point) }]
    : [{ note: "No step of this point was traced, or its spans were left out." }];
})];
