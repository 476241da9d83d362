// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the index of several runs: the experiments of each, by machine, and throughput over time.
import { joined, percent, si } from "../format.js";
import { lineOf } from "../marks.js";
import { dateText } from "../machine.js";
import { count, rate, share, words } from "../table.js";

const verdicts = new Map([[true, "yes"], [false, "no"]]);

const pointsText = ({ ok, failed, skipped }) => joined([`${ok} ok`, failed > 0 && `${failed} failed`, skipped > 0 && `${skipped} skipped`]);

const columns = [
  words("created", ({ run }) => dateText(run.created), "nowrap"), words("file", ({ run }) => run.file), words("machine", ({ run }) => run.machine),
  words("experiment", ({ of }) => joined([of.workload, of.model, of.dtype, of.scaling].filter((part) => part !== "none"))),
  count("ranks", ({ of }) => of.ranks), count("nodes", ({ of }) => of.nodes),
  rate("throughput", ({ of }) => of.throughput.value), words("unit", ({ of }) => of.throughput.unit),
  share("efficiency", ({ of }) => of.efficiency), words("verified", ({ of }) => verdicts.get(of.verified)),
  words("points", ({ of }) => pointsText(of.points), "nowrap"), words("labels", ({ of }) => of.labels.join(" ")),
];

const trendColumns = [
  words("machine"), words("experiment", (at) => at.title), count("ranks"), count("runs", (at) => at.runs.length),
  words("from", (at) => dateText(at.from), "nowrap"), words("to", (at) => dateText(at.to), "nowrap"),
  rate("first"), rate("last"), rate("median"), rate("lowest", (at) => at.min), rate("highest", (at) => at.max),
  words("unit"), share("range of throughput", (at) => at.spread),
];

const trendsOf = (machine) => machine.throughput_over_time.map((trend) => ({ machine: machine.name, ...trend }));

/** Returns the tables of the index, with its runs by date; they are empty without an index. */
export function indexTables(report) {
  const runs = [...(report.index ?? [])].sort((a, b) => a.created.localeCompare(b.created));
  const tables = [
    { columns, items: runs.flatMap((run) => run.experiments.map((of) => ({ run, of }))), caption: "Index: each experiment of each run, at its largest rank count" },
    { columns: trendColumns, items: (report.machines ?? []).flatMap(trendsOf), caption: "Throughput over time" },
    { columns: [words("file"), words("why it could not be read", (at) => at.reason, "long")], items: report.unreadable ?? [], caption: "Not read" },
  ];
  return tables.map((table) => ({ table, when: table.items.length > 0 }));
}

/** Describes the chart of a machine's trends by date; null if no experiment was run twice. */
function overTime(machine, i, runs) {
  const trends = trendsOf(machine).filter((trend) => trend.runs.length > 1);
  if (trends.length === 0) return null;
  const itemsOf = (trend) => trend.runs.map((id) => {
    const run = runs.get(id);
    const { throughput } = run.experiments.find((at) => at.fingerprint === trend.fingerprint);
    return { x: Date.parse(run.created), y: throughput.value / trend.median, throughput, version: run.isoscale_version };
  });
  return {
    id: `over-time-${i}`,
    title: machine.name,
    note: "throughput over the experiment's median, by when the run began; labelled points are left out. Whether a change is established: isoscale compare",
    table: { columns: trendColumns, items: trends },
    option: (colours) => ({
      xAxis: { type: "time" },
      yAxis: { scale: true, format: (value) => percent(value, 0) },
      zoom: true,
      tip: ({ seriesName, data }) => `${seriesName}\n${dateText(new Date(data.value[0]).toISOString())}: ` +
        `${si(data.throughput.value)} ${data.throughput.unit}\nIsoscale ${data.version}`,
      series: trends.map((trend, k) => lineOf(`${trend.title} on ${trend.ranks}`, k, colours, itemsOf(trend), { symbolSize: 6, stroke: { width: 1 } })),
    }),
  };
}

/** Returns functions that make the sections of a page that has only an index. */
export function indexSections(report) {
  const runs = new Map(report.index.map((run) => [run.id, run]));
  const drawn = report.machines.map((machine, i) => overTime(machine, i, runs)).filter(Boolean);
  const days = report.index.map((run) => run.created.slice(0, 10)).sort();
  const heading = `${report.index.length} runs on ${report.machines.length} kinds of machine, ${days[0] ?? ""} to ${days.at(-1) ?? ""}`;
  return [
    () => ({ id: "index", title: "Runs", heading, blocks: [...report.warnings.map((mark) => ({ mark })), ...indexTables(report)] }),
    () => (drawn.length > 0 ? { id: "over-time", title: "Over time", heading: "Throughput over time", blocks: [{ charts: drawn }] } : null),
  ];
}
