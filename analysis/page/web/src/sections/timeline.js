// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// One traced step as it ran: lanes of ranks, boxes of operations.
import { el } from "../dom.js";
import { missing, percent, rankCount, seconds } from "../format.js";
import { changingChart, pointContent } from "../select.js";
import { idleNames, idleSeries, idleWithin, isCommunication, laneLines, spanSeries } from "./spans.js";

const nano = (value) => seconds(value * 1e-9);

/** Makes a row for each stream of each lane on which something ran. */
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

function spanText(timeline, i) {
  const { spans } = timeline;
  const part = (word, value) => (value >= 0 ? `, ${word} ${value}` : "");
  return `${timeline.ops[spans.op[i]]}, ${timeline.phases[spans.phase[i]].replaceAll("_", " ")}` +
    `${part("microbatch", spans.microbatch[i])}${part("layer", spans.layer[i])}\n` +
    `${laneTitle(timeline.lanes[spans.lane[i]])}\n` +
    `from ${nano(spans.start[i])}, for ${nano(spans.length[i])}`;
}

/** Returns the step's length in nanoseconds, the unit of spans. */
const lengthOf = (timeline) => Math.round(timeline.length * 1e9);

/**
 * Returns the step's time, which is that of its slowest rank, and the width of the picture, from
 * the first rank's begin to the last one's end.
 */
function stepText(timeline) {
  const time = seconds(timeline.step_time);
  const width = seconds(timeline.length);
  return `Step ${timeline.step}, ${time}${time === width ? "" : `; drawn over ${width}: ranks begin at different times`}`;
}

function noteOf(timeline) {
  const mixed = timeline.ops.includes("mixed") ? "; full with stripes: communication drawn together with other work" : "";
  const parts = [stepText(timeline), `Numbers: microbatches; hatched: communication${mixed}; tinted: nothing computes or copies; empty at the ends: a rank begins later or is done`];
  if (timeline.merged > 0) parts.push(`${timeline.merged} operations drawn together with their neighbours`);
  if (timeline.spans_left_out > 0) parts.push(`${timeline.spans_left_out} short operations are left out`);
  if (timeline.left_out > 0) parts.push(`${timeline.left_out} more traced ranks are not shown`);
  return `${parts.join(". ")}. Ctrl and wheel, the slider, or + and - zoom.`;
}

function numbers(timeline) {
  const { spans } = timeline;
  const place = (value) => (value >= 0 ? value : null);
  return {
    columns: [
      { title: "lane" }, { title: "rank", number: true }, { title: "stream" }, { title: "operation" }, { title: "phase" },
      { title: "microbatch", number: true }, { title: "layer", number: true },
      { title: "start / ns", number: true }, { title: "length / ns", number: true },
    ],
    rows: spans.lane.map((l, i) => {
      const lane = timeline.lanes[l];
      return [
        lane.label, lane.world_rank, lane.streams?.[spans.stream[i]] ?? spans.stream[i], timeline.ops[spans.op[i]],
        timeline.phases[spans.phase[i]], place(spans.microbatch[i]), place(spans.layer[i]), spans.start[i], spans.length[i]];
    }),
  };
}

function stepChart(timeline, point) {
  const layout = rowsOf(timeline);
  const rowHeight = layout.rows.length <= 12 ? 30 : Math.max(9, 520 / layout.rows.length);
  const narrow = () => window.innerWidth < 520;
  const crowded = rowHeight < 15;
  const hasMicrobatches = timeline.spans.microbatch.some((at) => at >= 0);
  return changingChart({
    id: "timeline-step",
    title: `One step on ${rankCount(point.ranks)}`,
    note: noteOf(timeline),
    switches: [{ name: "colour", label: "colour by", choices: hasMicrobatches ? ["microbatch", "phase", "kind"] : ["phase", "kind"] }],
    height: Math.round(layout.rows.length * rowHeight) + 110,
    table: numbers(timeline),
    option: (colours, state) => ({
      grid: { bottom: 58, top: 8, right: 20 },
      xAxis: {
        type: "value", min: 0, max: lengthOf(timeline), name: "time in the step", nameLocation: "middle", nameGap: 24,
        axisLabel: { formatter: nano },
        splitLine: { show: false },
      },
      yAxis: {
        type: "category",
        data: layout.rows.map((_, i) => String(i)),
        inverse: true,
        axisTick: { show: false },
        axisLabel: {
          // If there are many rows, only the lanes are labelled.
          interval: (i) => !crowded || layout.first.includes(i),
          width: narrow() ? 70 : 190,
          overflow: "truncate",
          formatter: (_, i) => {
            const row = layout.rows[i];
            const isFirst = layout.first.includes(i);
            if (!row.own) return row.title;
            if (narrow() || crowded) return isFirst ? row.title : "";
            return isFirst ? `${row.title}  ${row.own}` : row.own;
          },
        },
      },
      dataZoom: [
        { type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "weakFilter", minSpan: 0.02 },
        {
          type: "slider", xAxisIndex: 0, filterMode: "weakFilter", minSpan: 0.02, bottom: 2, height: 16,
          showDataShadow: false, showDetail: false, brushSelect: false,
          borderColor: colours.line, fillerColor: colours.ramp[1] + "33", handleStyle: { color: colours.background, borderColor: colours.faint },
        },
      ],
      tooltip: {
        formatter: ({ seriesName, value }) =>
          idleNames.includes(seriesName)
            ? `${seriesName}\n${laneTitle(timeline.lanes[value[4]])}\nfrom ${nano(value[1])}, for ${nano(value[2] - value[1])}`
            : spanText(timeline, value[3]),
      },
      series: [
        ...[0, 1].filter((kind) => timeline.idle?.kind.includes(kind)).map((kind) => idleSeries(timeline, layout, kind, colours)),
        ...timeline.phases.map((_, phase) => spanSeries(timeline, layout, phase, colours, state)).filter(({ data }) => data.length > 0),
        ...(timeline.merged > 0 && timeline.idle ? [idleWithin(timeline, layout, colours)] : []),
        laneLines(layout, colours),
      ],
    }),
  });
}

/** Says which share of the lanes' time is idle, counting all operations, drawn or not. */
function idleText({ totals, breakdown }) {
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  // The shares are of the ranks' own steps, which together are less than the picture if ranks begin
  // later or end earlier.
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
    content: pointContent(groups, (point) => {
      const { timeline } = point.details;
      if (!timeline) return [el("p", { class: "note" }, "No step of this point was traced, or its spans were left out.")];
      return [el("p", { class: "saying" }, idleText(timeline)), stepChart(timeline, point)];
    }),
  };
}
