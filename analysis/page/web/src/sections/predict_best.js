// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// What a search found: the best meshes and options, and why each loses to the first.
import { chart } from "../chart.js";
import { ownOf } from "../data.js";
import { el } from "../dom.js";
import { memory, percent, seconds, si } from "../format.js";
import { partCells, partColumns, partsOption, unitSwitch } from "../parts.js";
import { meshText } from "../predicted.js";
import { table } from "../table.js";

/** Options in which candidates differ, and the microbatch, which always matters. */
function tellingOptions(best) {
  const keys = [...new Set(best.flatMap((at) => Object.keys(at.options)))].sort();
  return keys.filter((key) => key === "microbatch" || new Set(best.map((at) => ownOf(at.options, key))).size > 1);
}

function candidates(best, unit) {
  const keys = tellingOptions(best);
  const first = best[0].step_time;
  return table(
    [{ title: "", csv: "place", number: true }, { title: "mesh" }, ...keys.map((title) => ({ title })),
      { title: "step time", csv: "step time / s", number: true, text: seconds },
      { title: "longer by", number: true, text: (value) => percent(value) },
      { title: unit || "throughput", number: true, text: (value) => si(value) },
      { title: "memory per rank", csv: "memory per rank / B", number: true, text: memory },
      { title: "why it loses to the first" }],
    best.map((at, i) => [i + 1, meshText(at.mesh), ...keys.map((key) => ownOf(at.options, key) ?? null), at.step_time, at.step_time / first - 1,
      at.throughput, at.memory_per_rank, at.why_not]),
    { id: "best-table", stacks: true });
}

function steps(best) {
  const shown = best.map((at, i) => ({ ...at, place: i + 1 })).filter((at) => at.breakdown !== null);
  if (shown.length === 0) return null;
  const bars = shown.map((at) => ({
    name: `${at.place}: ${meshText(at.mesh)}`, parts: at.breakdown, hidden: at.breakdown.hidden_communication, whole: at.step_time, note: "",
  }));
  return chart({
    id: "predict-best",
    title: "Their steps",
    switches: [{ ...unitSwitch, value: "seconds" }],
    table: {
      columns: [{ title: "", csv: "place", number: true }, { title: "mesh" }, { title: "step time", csv: "step time / s", number: true, text: seconds }, ...partColumns],
      rows: shown.map((at) => [at.place, meshText(at.mesh), at.step_time, ...partCells(at.breakdown, at.breakdown.hidden_communication)]),
    },
    height: 50 + 42 * bars.length,
    option: (colours, { unit }, isNarrow) => partsOption(bars, colours, { unit, labels: true, across: true, isNarrow }),
  });
}

export function bestSection(prediction) {
  const { best, searched } = prediction;
  if (best.length === 0) return null;
  const ranks = Object.values(best[0].mesh).reduce((product, extent) => product * extent, 1);
  return {
    id: "best",
    title: "Best",
    heading: `The best of ${searched} meshes and options, on ${ranks} ranks`,
    content: el("div", { class: "stacked" }, candidates(best, prediction.throughput_unit), steps(best)),
  };
}
