// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the parts of traced steps (mean over ranks) as stacked bars: by rank count, and by phase,
// mesh axis or layer. Communication that computation hides is a bar beside the others.
import {
  columns, ink, joined, known, labels, largest, launchesText, lined, metricsOf, mostBeside, oneOf, partNames,
  percent, pointTip, seconds, tipOfAll, unsound,
} from "../reexports.js";

const { heading: hidden } = metricsOf("point").hidden_communication;
const share = "share";

/** A bar of the charts below, which comments call a Bar, has these keys:
 * - name; and note, a text below it
 * - parts: seconds by the name of a part
 * - hidden: seconds of hidden communication, or null; and whole: seconds of the whole bar
 * - tip: the last lines of its tooltip */

// A part is drawn if it is at least this share of its bar; the table has smaller parts, too.
const least = 0.0005;

function seriesOf(bars, colours, { isShare, labelled, isNarrow, across }) {
  // A part gets a number if it is at least this share of the longest bar, so that there is room.
  const room = isNarrow && across ? 0.156 : 0.065;
  const scale = (bar) => (isShare ? bar.whole : 1);
  const value = (bar, of) => (known(of) && bar.whole > 0 ? of / scale(bar) : null);
  const used = partNames.filter((name) => bars.some((bar) => bar.parts?.[name] > least * bar.whole));
  const longest = Math.max(...bars.map((bar) => bar.whole / scale(bar)));
  const numberIn = (bar, name) => (bar.parts[name] / scale(bar) >= room * longest ? percent(bar.parts[name] / bar.whole, 0) : "");
  const stacked = used.map((name) => ({
    type: "bar", name, stack: "step", barMaxWidth: 64, itemStyle: { color: colours.parts[name] },
    data: bars.map((bar) => value(bar, bar.parts?.[name])),
    label: { show: labelled, color: ink(colours.parts[name]), fontSize: 11, formatter: ({ dataIndex }) => numberIn(bars[dataIndex], name) },
  }));
  if (!bars.some((bar) => bar.hidden > 0)) return stacked;
  return [...stacked, {
    type: "bar", name: hidden, stack: "hidden", barMaxWidth: 12, barGap: "12%",
    itemStyle: { color: `${colours.parts.transfer}55`, borderColor: colours.parts.transfer, borderType: "dashed", borderWidth: 1 },
    data: bars.map((bar) => value(bar, bar.hidden)),
  }];
}

function tipOf(bar) {
  const line = (name, value) => `${name}: ${seconds(value)}${bar.whole > 0 && known(value) ? `, ${percent(value / bar.whole)}` : ""}`;
  return lined(`${bar.name}${bar.note ? ` (${bar.note})` : ""}: ${seconds(bar.whole)}`,
    ...partNames.map((name) => line(name, bar.parts?.[name])), line(hidden, bar.hidden), bar.tip);
}

/** The columns of a table for the parts of bars, all in seconds. */
export const partColumns = columns("part", ...partNames.map((name) => `${name}=parts.${name}`), `${hidden}:seconds=hidden`);

/** Describes a chart of bars. It takes a chart's description without `option`, and these keys:
 * - bars: Bar[], or a function of the state that returns them
 * - numbers: columns of the chart's table, which has a row for each of `items`, or else for each
 *   bar
 * - unit: "share" of each bar's whole, or "seconds"; a switch changes it unless `isFixed`
 * - across: true if bars are horizontal
 * - axis: the name of the axis along which bars are lined up
 * - labelled(bars, state, isNarrow): true if parts have numbers */
export function partsChart({ bars, numbers, items, unit = share, isFixed = false, across = false, axis, switches = [],
  labelled = (all, _, isNarrow) => across || all.length <= (isNarrow ? 4 : 10), ...spec }) {
  const shown = (state) => (typeof bars === "function" ? bars(state) : bars);
  return {
    height: across ? (state) => 50 + 42 * shown(state).length : 270,
    ...spec,
    switches: isFixed ? switches : [{ name: "unit", label: "bars", choices: [share, "seconds"], value: unit }, ...switches],
    table: { columns: numbers, items: items ?? bars },
    option: (colours, state, isNarrow) => {
      const all = shown(state);
      const isShare = !isFixed && state.unit === share;
      const mostHidden = Math.max(...all.map((bar) => (bar.hidden ?? 0) / (bar.whole || 1)));
      const values = { min: 0, max: isShare && mostHidden <= 1 ? 1 : undefined, format: (value) => (isShare ? percent(value, 0) : seconds(value)) };
      const names = {
        type: "category", data: all.map((bar) => lined(bar.name, bar.note)), inverse: across, name: axis,
        nameGap: all.some((bar) => bar.note) ? 40 : 26,
        axisLabel: { hideOverlap: !across, interval: across ? "auto" : 0, lineHeight: 14, ...(across && isNarrow ? { width: 96, overflow: "break" } : {}) },
      };
      return {
        xAxis: across ? values : names, yAxis: across ? names : values, grid: { top: 12 }, tooltip: tipOfAll,
        tip: (seen) => tipOf(all[seen[0].dataIndex]),
        series: seriesOf(all, colours, { isShare, labelled: labelled(all, state, isNarrow), isNarrow, across }),
      };
    },
  };
}

const marked = [...unsound, "not-closed"];
const isTraced = (point) => known(point.full.traced_step);

const barOf = (curve, point, name = String(point.ranks)) => ({
  name, curve: curve.short, ranks: point.ranks, labels: point.labels, full: point.full, parts: point.full.breakdown,
  hidden: point.full.hidden_communication, whole: point.full.traced_step,
  note: joined(point.labels.filter((label) => marked.includes(label))), tip: pointTip({ ...point, labels: [] }),
});

const barsOf = (curve) => curve.points.filter(isTraced).map((point) => barOf(curve, point));

const stepNumbers = columns("point", "curve, ranks, traced_step=whole", partColumns,
  ...["communication_ratio", "schedule_bubble", "traced_steps"].map((key) => `${key}=full.${key}`), labels);

/** Describes the chart with a bar for each curve, at its largest traced rank count. */
function allCurves(curves) {
  const points = curves.map((curve) => largest(curve.points.filter(isTraced)));
  return partsChart({
    id: "step-all", title: "A step at the largest rank count",
    note: joined(["in brackets: ranks; mean over the traced ones; dashed: communication that computation hides",
      launchesText(points) && "each of its typical launch"], "; "),
    bars: points.map((point, i) => barOf(curves[i], point, `${curves[i].short} (${point.ranks})`)),
    numbers: stepNumbers, across: true,
  });
}

/** Describes the chart of one curve; `items` are the rows of its table, which has all curves. */
function stepsOf(curve, index, items) {
  const points = curve.points.filter(isTraced);
  const incomplete = points.find((point) => point.full.breakdown_missing);
  return partsChart({
    id: `step-${index}`, title: `A step of ${curve.short}`,
    note: joined([launchesText(points), incomplete && `${incomplete.ranks} ranks: ${incomplete.full.breakdown_missing}`], "; "),
    bars: barsOf(curve), numbers: stepNumbers, items, axis: "ranks",
  });
}

/** Returns a bar for each "phase", mesh "axis" or "layer" (`by`) of a point's step. */
const placesOf = (point, by) => Object.entries(point.full.breakdown_by?.[by] ?? {}).map(([place, parts]) => ({
  name: by === "layer" && /^\d+$/.test(place) ? `layer ${place}` : place.replaceAll("_", " "),
  ranks: point.ranks, by, place, parts, hidden: parts.hidden_communication, tip: pointTip(point),
  whole: Object.entries(parts).reduce((sum, [name, value]) => sum + (name.startsWith("hidden_") ? 0 : value ?? 0), 0),
}));

/** Describes the chart of a curve's steps by phase, mesh axis or layer; null without such data. */
function places(curve, index) {
  const points = curve.points.filter((point) => isTraced(point) && point.full.breakdown_by);
  if (points.length === 0) return null;
  const by = ["phase", "axis", "layer"].filter((name) => points.some((point) => placesOf(point, name).length > 0));
  const counts = points.map((point) => String(point.ranks));
  const bars = (state) => placesOf(points[counts.indexOf(state.ranks)] ?? points.at(-1), state.by);
  return partsChart({
    id: `places-${index}`, title: `Where in the step of ${curve.short}`,
    note: joined(["time in a traced step, mean over ranks; numbers: share of the bar", launchesText(points)], "; "),
    switches: [{ name: "by", label: "by", choices: by },
      { name: "ranks", label: "ranks", choices: [...new Set(counts)], value: counts.at(-1) }],
    bars, numbers: columns("point", "ranks, by, place", partColumns),
    items: points.flatMap((point) => by.flatMap((name) => placesOf(point, name))),
    height: (state) => 50 + Math.max(2, bars(state).length) * (state.by === "layer" ? 26 : 40),
    isFixed: true, across: true, labelled: (_, state) => state.by !== "layer",
  });
}

export function breakdownBlocks({ curves: all }) {
  const curves = all.filter((curve) => curve.points.some(isTraced));
  const items = curves.flatMap(barsOf);
  const steps = curves.map((curve, i) => stepsOf(curve, i, items));
  const isMany = curves.length > mostBeside;
  const isOne = curves.length === 1;
  const ofCurve = (i) => [{ charts: [isMany && steps[i], places(curves[i], i)] }];
  return [
    curves.length > 1 && { charts: [allCurves(curves)] },
    { when: !isMany, charts: [...steps, isOne && places(curves[0], 0)] },
    !isOne && oneOf("curve", curves.map((curve) => curve.short), ofCurve)];
}
