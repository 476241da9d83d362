// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Draws one traced step as it ran: a lane for each rank, a box for each operation.
import { joined, missing, percent, rankCount, seconds } from "../format.js";
import { pointContent } from "../select.js";
import { count, words } from "../table.js";
import { linesBefore } from "./heat.js";
import { idleNames, idleSeries, idleWithin, isCommunication, spanSeries } from "./spans.js";

const nano = (value) => seconds(value * 1e-9);

/** Makes a row for each stream of each lane that has operations. */
function rowsOf(timeline) {
  const used = timeline.lanes.map(() => new Set());
  const computes = new Set();
  timeline.spans.lane.forEach((lane, i) => {
    used[lane].add(timeline.spans.stream[i]);
    if (!isCommunication(timeline.ops[timeline.spans.op[i]])) computes.add(`${lane} ${timeline.spans.stream[i]}`);
  });
  const rows = [];
  const first = [];
  timeline.lanes.forEach((lane, l) => {
    first.push(rows.length);
    const streams = [...used[l]].sort((a, b) => a - b);
    for (const stream of streams.length > 0 ? streams : [0]) {
      rows.push({ lane: l, stream, computes: computes.has(`${l} ${stream}`), title: lane.label, own: streams.length > 1 ? (lane.streams?.[stream] ?? `stream ${stream}`) : "" });
    }
  });
  const rowOf = new Map(rows.map((row, i) => [`${row.lane} ${row.stream}`, i]));
  return { rows, first, rowOf };
}

function laneTitle(lane) {
  const at = Object.entries(lane.coordinates ?? {}).map(([axis, index]) => `${axis} ${index}`).join(", ");
  const rank = `rank ${lane.world_rank}`;
  return `${lane.label === rank ? rank : `${lane.label}, ${rank}`} on ${lane.host}${at ? ` (${at})` : ""}`;
}

const place = (value) => (value >= 0 ? value : null);

/** Returns the operations of a timeline, as items of its table and for tooltips. */
const spansOf = ({ spans, lanes, ops, phases }) => spans.lane.map((l, i) => ({
  lane: lanes[l].label, of: lanes[l], rank: lanes[l].world_rank, stream: lanes[l].streams?.[spans.stream[i]] ?? spans.stream[i],
  operation: ops[spans.op[i]], phase: phases[spans.phase[i]], microbatch: place(spans.microbatch[i]), layer: place(spans.layer[i]),
  "start / ns": spans.start[i], "length / ns": spans.length[i],
}));

const columns = [
  words("lane"), count("rank"), words("stream"), words("operation"), words("phase"), count("microbatch"), count("layer"),
  count("start / ns"), count("length / ns"),
];

function spanText(at) {
  const part = (name) => at[name] !== null && `${name} ${at[name]}`;
  return `${joined([at.operation, at.phase.replaceAll("_", " "), part("microbatch"), part("layer")])}\n` +
    `${laneTitle(at.of)}\nfrom ${nano(at["start / ns"])}, for ${nano(at["length / ns"])}`;
}

/**
 * Returns the time of the step, which is that of its slowest rank, and the time that the picture
 * covers, from the first begin to the last end of a rank.
 */
function stepText(timeline) {
  const time = seconds(timeline.step_time);
  const width = seconds(timeline.length);
  return `Step ${timeline.step}, ${time}${time === width ? "" : `; drawn over ${width}: ranks begin at different times`}`;
}

function noteOf(timeline) {
  const mixed = timeline.ops.includes("mixed") ? "; full with stripes: communication drawn together with other work" : "";
  return `${joined([
    stepText(timeline),
    `Numbers: microbatches; hatched: communication${mixed}; tinted: nothing computes or copies; empty at the ends: a rank begins later or is done`,
    timeline.merged > 0 && `${timeline.merged} operations drawn together with their neighbours`,
    timeline.spans_left_out > 0 && `${timeline.spans_left_out} short operations are left out`,
    timeline.left_out > 0 && `${timeline.left_out} more traced ranks are not shown`], ". ")}. Ctrl and wheel, the slider, or + and - zoom.`;
}

/** Makes the axis of lanes. If there are many rows, only the lanes are labelled. */
function laneAxis({ rows, first }, isCrowded) {
  const isNarrow = window.innerWidth < 520;
  return {
    type: "category",
    data: rows.map((_, i) => String(i)),
    inverse: true,
    axisLabel: {
      interval: (i) => !isCrowded || first.includes(i),
      width: isNarrow ? 70 : 190,
      overflow: "truncate",
      formatter: (_, i) => {
        const { title, own } = rows[i];
        const isFirst = first.includes(i);
        if (!own) return title;
        if (isNarrow || isCrowded) return isFirst ? title : "";
        return isFirst ? `${title}  ${own}` : own;
      },
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
  const layout = rowsOf(timeline);
  const rowHeight = layout.rows.length <= 12 ? 30 : Math.max(9, 520 / layout.rows.length);
  const hasMicrobatches = timeline.spans.microbatch.some((at) => at >= 0);
  const items = spansOf(timeline);
  return {
    id: "timeline-step",
    title: `One step on ${rankCount(point.ranks)}`,
    note: noteOf(timeline),
    switches: [{ name: "colour", label: "colour by", choices: hasMicrobatches ? ["microbatch", "phase", "kind"] : ["phase", "kind"] }],
    height: Math.round(layout.rows.length * rowHeight) + 110,
    table: { columns, items },
    option: (colours, state) => ({
      grid: { bottom: 58, top: 8, right: 20 },
      xAxis: { min: 0, max: Math.round(timeline.length * 1e9), name: "time in the step", nameGap: 24, format: nano, splitLine: { show: false } },
      yAxis: laneAxis(layout, rowHeight < 15),
      dataZoom: zoomOf(colours),
      tip: ({ seriesName, value: [, start, end, , at] }) => (idleNames.includes(seriesName)
        ? `${seriesName}\n${laneTitle(timeline.lanes[at])}\nfrom ${nano(start)}, for ${nano(end - start)}` : spanText(items[at])),
      series: [
        ...[0, 1].filter((kind) => timeline.idle?.kind.includes(kind)).map((kind) => idleSeries(timeline, layout, kind, colours)),
        ...timeline.phases.map((_, phase) => spanSeries(timeline, layout, phase, colours, state)).filter(({ data }) => data.length > 0),
        ...(timeline.merged > 0 && timeline.idle ? [idleWithin(timeline, layout, colours)] : []),
        linesBefore(layout.first.slice(1), "lanes", { stroke: colours.line }, "y", 2),
      ],
    }),
  };
}

/** Says which share of the lanes' time is idle; it counts all operations, even those not drawn. */
function idleText({ totals, breakdown }) {
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  // The shares are relative to the sum of the ranks' own steps, which is less than the time drawn
  // if ranks begin later or end earlier.
  const whole = sum(totals.step);
  const share = (value, of) => (of > 0 ? percent(value / of) : missing);
  const [exposed, gap] = [sum(totals.exposed), sum(totals.gap)];
  const waits = breakdown && breakdown.wait_known && breakdown.bubble_known;
  const step = `Nothing computes or copies in ${share(exposed + gap, whole)} of these lanes' time: ` +
    `${share(exposed, whole)} exposed communication${waits ? "" : " or waiting"}, ${share(gap, whole)} gap.`;
  if (!waits) return step;
  const { transfer, wait, bubble, steps } = breakdown;
  const part = (value) => share(value, breakdown.step);
  const over = steps === 1 ? "The exposed communication is" : `Over ${steps} traced steps these ranks' exposed communication is`;
  return `${step} ${over} ${part(transfer)} transfer, ${part(wait)} wait and ${part(bubble)} bubble.`;
}

/** @param {object[]} groups of detailed() */
export function timelineSection(groups) {
  if (!groups.some((group) => group.points.some((point) => point.details.timeline))) return null;
  return {
    id: "timeline",
    title: "Traced step",
    heading: "A traced step",
    blocks: [pointContent(groups, (point) => {
      const { timeline } = point.details;
      return timeline ? [{ saying: idleText(timeline) }, { chart: stepChart(timeline, point) }]
        : [{ note: "No step of this point was traced, or its spans were left out." }];
    })],
  };
}
