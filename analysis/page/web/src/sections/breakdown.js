// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows what ranks did in a traced step, by rank count, and in which places of the step.
import { largest } from "../causes.js";
import { chart } from "../chart.js";
import { launchesText, unsound } from "../data.js";
import { el } from "../dom.js";
import { percent, seconds } from "../format.js";
import { partCells, partColumns, partsOption, unitSwitch } from "../parts.js";
import { oneOf } from "../select.js";

const mostSmall = 6;
const marked = [...unsound, "not-closed"];

const isTraced = (point) => typeof point.full.traced_step === "number";

function barOf(point, name) {
  return {
    name,
    parts: point.full.breakdown,
    hidden: point.full.hidden_communication,
    whole: point.full.traced_step,
    note: point.labels.filter((label) => marked.includes(label)).join(", "),
  };
}

const columns = [
  { title: "curve" },
  { title: "ranks", number: true },
  { title: "traced step", csv: "traced step / s", number: true, text: seconds },
  ...partColumns,
  { title: "communication ratio", number: true, text: (value) => percent(value) },
  { title: "schedule's bubble", csv: "schedule's bubble / s", number: true, text: seconds },
  { title: "traced steps", number: true },
  { title: "labels" },
];

function row(curve, point) {
  const { full } = point;
  return [curve.short, point.ranks, full.traced_step, ...partCells(full.breakdown, full.hidden_communication),
    full.communication_ratio, full.schedule_bubble ?? null, full.traced_steps ?? null, point.labels.join(" ")];
}

/** Shows all curves at their largest count. */
function allCurves(curves) {
  const points = curves.map((curve) => largest(curve.points.filter(isTraced)));
  const bars = points.map((point, i) => barOf(point, `${curves[i].short} (${point.ranks})`));
  return chart({
    id: "step-all",
    title: "A step at the largest rank count",
    note: ["in brackets: ranks; mean over the traced ones; dashed: communication that computation hides", launchesText(points) && "each of its typical launch"].filter(Boolean).join("; "),
    switches: [unitSwitch],
    table: { columns, rows: points.map((point, i) => row(curves[i], point)) },
    height: 50 + 42 * bars.length,
    option: (colours, { unit }, isNarrow) => partsOption(bars, colours, { unit, labels: true, across: true, isNarrow }),
  });
}

/** Shows one curve over its counts. */
function overRanks(curve, index, rows) {
  const points = curve.points.filter(isTraced);
  const bars = points.map((point) => barOf(point, String(point.ranks)));
  const incomplete = points.find((point) => point.full.breakdown_missing);
  return chart({
    id: `step-${index}`,
    title: `A step of ${curve.short}`,
    note: [launchesText(points), incomplete ? `${incomplete.ranks} ranks: ${incomplete.full.breakdown_missing}` : ""].filter(Boolean).join("; ") || undefined,
    switches: [unitSwitch],
    table: { columns, rows },
    height: 270,
    option: (colours, { unit }, isNarrow) => partsOption(bars, colours, { unit, labels: bars.length <= (isNarrow ? 4 : 10), axis: "ranks", isNarrow }),
  });
}

const placeColumns = [{ title: "ranks", number: true }, { title: "by" }, { title: "place" }, ...partColumns];

const placesOf = (point, by) => Object.entries(point.full.breakdown_by?.[by] ?? {});
const sum = (parts) => Object.entries(parts).reduce((total, [name, value]) => total + (name === "hidden_communication" ? 0 : value ?? 0), 0);

function placeBars(point, by) {
  return placesOf(point, by).map(([name, parts]) => ({
    name: by === "layer" && /^\d+$/.test(name) ? `layer ${name}` : name.replaceAll("_", " "),
    parts,
    hidden: parts.hidden_communication,
    whole: sum(parts),
    note: "",
  }));
}

/** Shows where in the step the parts are, by phase, mesh axis and layer, for one curve. */
function places(curve, index) {
  const points = curve.points.filter((point) => isTraced(point) && point.full.breakdown_by);
  if (points.length === 0) return null;
  const by = ["phase", "axis", "layer"].filter((name) => points.some((point) => placesOf(point, name).length > 0));
  const counts = points.map((point) => String(point.ranks));
  const chosen = (state) => points[counts.indexOf(state.ranks)] ?? points.at(-1);
  return chart({
    id: `places-${index}`,
    title: `Where in the step of ${curve.short}`,
    note: ["time in a traced step, mean over ranks; numbers: share of the bar", launchesText(points)].filter(Boolean).join("; "),
    switches: [{ name: "by", label: "by", choices: by },
      { name: "ranks", label: "ranks", choices: [...new Set(counts)], value: counts.at(-1) }],
    table: {
      columns: placeColumns,
      rows: points.flatMap((point) => by.flatMap((name) => placesOf(point, name).map(([place, parts]) =>
        [point.ranks, name, place, ...partCells(parts, parts.hidden_communication)]))),
    },
    height: (state) => 50 + Math.max(2, placesOf(chosen(state), state.by).length) * (state.by === "layer" ? 26 : 40),
    option: (colours, state, isNarrow) =>
      partsOption(placeBars(chosen(state), state.by), colours, { unit: "seconds", labels: state.by !== "layer", across: true, isNarrow }),
  });
}

/** @param {import("../data.js").Curve[]} all */
export function breakdownSection(all) {
  const curves = all.filter((curve) => curve.points.some(isTraced));
  if (curves.length === 0) return null;
  const rows = curves.flatMap((curve) => curve.points.filter(isTraced).map((point) => row(curve, point)));
  const names = curves.map((curve) => curve.short);
  const one = (i) => [overRanks(curves[i], i, rows), places(curves[i], i)];
  const grid = (...charts) => el("div", { class: "charts" }, charts);
  return {
    id: "breakdown",
    title: "Step",
    heading: "Where a step goes",
    content: el("div", { class: "stacked" },
      curves.length > 1 ? allCurves(curves) : null,
      curves.length > mostSmall
        ? oneOf("curve", names, (i) => [grid(...one(i))])
        : [grid(curves.length === 1 ? one(0) : curves.map((curve, i) => overRanks(curve, i, rows))),
          curves.length === 1 ? null : oneOf("curve", names, (i) => [places(curves[i], i)])]),
  };
}
