// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the activity of ranks in a traced step, by rank count and by place in the step.
import { largest } from "../causes.js";
import { launchesText, unsound } from "../data.js";
import { joined, known } from "../format.js";
import { partColumns, partsChart } from "../parts.js";
import { oneOf } from "../select.js";
import { count, share, time, words } from "../table.js";

const mostSmall = 6;
const marked = [...unsound, "not-closed"];

const isTraced = (point) => known(point.full.traced_step);

const barOf = (curve, point, name = String(point.ranks)) => ({
  name,
  curve: curve.short,
  ranks: point.ranks,
  labels: point.labels,
  full: point.full,
  parts: point.full.breakdown,
  hidden: point.full.hidden_communication,
  whole: point.full.traced_step,
  note: joined(point.labels.filter((label) => marked.includes(label))),
});

const barsOf = (curve) => curve.points.filter(isTraced).map((point) => barOf(curve, point));

const columns = [
  words("curve"), count("ranks"), time("traced step", ({ whole }) => whole), ...partColumns,
  share("communication ratio", ({ full }) => full.communication_ratio),
  time("schedule's bubble", ({ full }) => full.schedule_bubble),
  count("traced steps", ({ full }) => full.traced_steps),
  words("labels", ({ labels }) => labels.join(" ")),
];

/** Describes the chart of all curves at their largest rank counts. */
function allCurves(curves) {
  const points = curves.map((curve) => largest(curve.points.filter(isTraced)));
  return partsChart({
    id: "step-all",
    title: "A step at the largest rank count",
    note: joined(["in brackets: ranks; mean over the traced ones; dashed: communication that computation hides",
      launchesText(points) && "each of its typical launch"], "; "),
    bars: points.map((point, i) => barOf(curves[i], point, `${curves[i].short} (${point.ranks})`)),
    columns,
    across: true,
  });
}

/** Describes the chart of one curve over rank counts; its table has the numbers of all curves. */
function overRanks(curve, index, items) {
  const points = curve.points.filter(isTraced);
  const incomplete = points.find((point) => point.full.breakdown_missing);
  return partsChart({
    id: `step-${index}`,
    title: `A step of ${curve.short}`,
    note: joined([launchesText(points), incomplete && `${incomplete.ranks} ranks: ${incomplete.full.breakdown_missing}`], "; "),
    bars: barsOf(curve),
    columns,
    items,
    axis: "ranks",
  });
}

const sum = (parts) => Object.entries(parts).reduce((total, [name, value]) => total + (name === "hidden_communication" ? 0 : value ?? 0), 0);

/** Returns a bar for each place of a step, by phase, mesh axis or layer. */
const placesOf = (point, by) => Object.entries(point.full.breakdown_by?.[by] ?? {}).map(([place, parts]) => ({
  name: by === "layer" && /^\d+$/.test(place) ? `layer ${place}` : place.replaceAll("_", " "),
  ranks: point.ranks, by, place, parts, hidden: parts.hidden_communication, whole: sum(parts),
}));

const placeColumns = [count("ranks"), words("by"), words("place"), ...partColumns];

/**
 * Describes the chart of the parts by place in the step (phase, mesh axis or layer), for one curve;
 * null without places.
 */
function places(curve, index) {
  const points = curve.points.filter((point) => isTraced(point) && point.full.breakdown_by);
  if (points.length === 0) return null;
  const by = ["phase", "axis", "layer"].filter((name) => points.some((point) => placesOf(point, name).length > 0));
  const counts = points.map((point) => String(point.ranks));
  const bars = (state) => placesOf(points[counts.indexOf(state.ranks)] ?? points.at(-1), state.by);
  return partsChart({
    id: `places-${index}`,
    title: `Where in the step of ${curve.short}`,
    note: joined(["time in a traced step, mean over ranks; numbers: share of the bar", launchesText(points)], "; "),
    switches: [{ name: "by", label: "by", choices: by },
      { name: "ranks", label: "ranks", choices: [...new Set(counts)], value: counts.at(-1) }],
    bars,
    columns: placeColumns,
    items: points.flatMap((point) => by.flatMap((name) => placesOf(point, name))),
    height: (state) => 50 + Math.max(2, bars(state).length) * (state.by === "layer" ? 26 : 40),
    isFixed: true,
    across: true,
    labels: (_, state) => state.by !== "layer",
  });
}

/** @param {import("../data.js").Curve[]} all */
export function breakdownSection(all) {
  const curves = all.filter((curve) => curve.points.some(isTraced));
  if (curves.length === 0) return null;
  const items = curves.flatMap(barsOf);
  const names = curves.map((curve) => curve.short);
  const steps = curves.map((curve, i) => overRanks(curve, i, items));
  const single = (i) => [places(curves[i], i)];
  const isMany = curves.length > mostSmall;
  return {
    id: "breakdown",
    title: "Step",
    heading: "Where a step goes",
    look: "stacked",
    blocks: [
      { when: curves.length > 1, charts: [allCurves(curves)] },
      { when: !isMany, charts: [...steps, ...(curves.length === 1 ? single(0) : [])] },
      curves.length === 1 ? null : oneOf("curve", names, (i) => [{ charts: [...(isMany ? [steps[i]] : []), ...single(i)] }])],
  };
}
