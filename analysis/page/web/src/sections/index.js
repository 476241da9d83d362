// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The index of several runs: what each ran, by machine, and how throughput moved over time.
import { chart } from "../chart.js";
import { el } from "../dom.js";
import { percent, si } from "../format.js";
import { dateText } from "../machine.js";
import { table } from "../table.js";
import { symbols } from "../theme.js";

const nowrap = () => "nowrap";

const columns = [
  { title: "created", look: nowrap },
  { title: "file" },
  { title: "machine" },
  { title: "experiment" },
  { title: "ranks", number: true },
  { title: "nodes", number: true },
  { title: "throughput", number: true, text: (value) => si(value) },
  { title: "unit" },
  { title: "efficiency", number: true, text: (value) => percent(value) },
  { title: "verified" },
  { title: "points", look: nowrap },
  { title: "labels" },
];

const verdicts = new Map([[true, "yes"], [false, "no"]]);

function pointsText({ ok, failed, skipped }) {
  return [`${ok} ok`, failed > 0 ? `${failed} failed` : "", skipped > 0 ? `${skipped} skipped` : ""].filter(Boolean).join(", ");
}

function rowsOf(run) {
  return run.experiments.map((of) => [
    dateText(run.created), run.file, run.machine, [of.workload, of.model, of.dtype, of.scaling].filter((part) => part && part !== "none").join(", "),
    of.ranks, of.nodes, of.throughput.value, of.throughput.unit, of.efficiency, verdicts.get(of.verified) ?? null,
    pointsText(of.points), of.labels.join(" "),
  ]);
}

const trendColumns = [
  { title: "machine" }, { title: "experiment" }, { title: "ranks", number: true }, { title: "runs", number: true },
  { title: "from", look: nowrap }, { title: "to", look: nowrap },
  ...["first", "last", "median", "lowest", "highest"].map((title) => ({ title, number: true, text: (value) => si(value) })),
  { title: "unit" }, { title: "range of throughput", number: true, text: (value) => percent(value) },
];

function trendRows(machine) {
  return machine.throughput_over_time.map((at) => [machine.name, at.title, at.ranks, at.runs.length, dateText(at.from), dateText(at.to),
    at.first, at.last, at.median, at.min, at.max, at.unit, at.spread]);
}

/** Makes the tables of the index, with its runs by date; [] without an index. */
export function indexTables(report) {
  const rows = [...(report.index ?? [])].sort((a, b) => a.created.localeCompare(b.created)).flatMap(rowsOf);
  const trends = (report.machines ?? []).flatMap(trendRows);
  const unreadable = (report.unreadable ?? []).map((at) => [at.file, at.reason]);
  return [
    rows.length > 0 ? table(columns, rows, { caption: "Index: each experiment of each run, at its largest rank count" }) : null,
    trends.length > 0 ? table(trendColumns, trends, { caption: "Throughput over time" }) : null,
    unreadable.length > 0 ? table([{ title: "file" }, { title: "why it could not be read", look: () => "long" }], unreadable, { caption: "Not read" }) : null,
  ];
}

/** Returns [time, throughput over the median] of each run of a trend, by date. */
function pointsOf(trend, runs) {
  return trend.runs.map((id) => {
    const run = runs.get(id);
    const of = run.experiments.find((at) => at.fingerprint === trend.fingerprint);
    return { value: [Date.parse(run.created), of.throughput.value / trend.median], throughput: of.throughput, version: run.isoscale_version };
  });
}

function overTime(machine, i, runs) {
  const trends = machine.throughput_over_time.filter((trend) => trend.runs.length > 1);
  if (trends.length === 0) return null;
  return chart({
    id: `over-time-${i}`,
    title: machine.name,
    note: "throughput over the experiment's median, by when the run began; labelled points are left out. Whether a change is established: isoscale compare",
    table: { columns: trendColumns, rows: trendRows({ ...machine, throughput_over_time: trends }) },
    option: (colours) => ({
      xAxis: { type: "time" },
      yAxis: { type: "value", scale: true, axisLabel: { formatter: (value) => percent(value, 0) } },
      dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }],
      tooltip: {
        trigger: "item",
        formatter: ({ seriesName, data }) => `${seriesName}\n${dateText(new Date(data.value[0]).toISOString())}: ${si(data.throughput.value)} ${data.throughput.unit}\nIsoscale ${data.version}`,
      },
      series: trends.map((trend, k) => ({
        type: "line",
        name: `${trend.title} on ${trend.ranks}`,
        data: pointsOf(trend, runs),
        symbol: symbols[k % symbols.length],
        symbolSize: 6,
        lineStyle: { color: colours.series[k % colours.series.length], width: 1 },
        itemStyle: { color: colours.series[k % colours.series.length] },
      })),
    }),
  });
}

/** Makes the sections of a page that has only an index. */
export function indexSections(report) {
  const runs = new Map(report.index.map((run) => [run.id, run]));
  const drawn = report.machines.map((machine, i) => overTime(machine, i, runs)).filter(Boolean);
  const days = report.index.map((run) => run.created.slice(0, 10)).sort();
  const summary = `${report.index.length} runs on ${report.machines.length} kinds of machine, ${days[0] ?? ""} to ${days.at(-1) ?? ""}`;
  return [
    {
      id: "index",
      title: "Runs",
      heading: summary,
      content: el("div", {}, report.warnings.map((warning) => el("p", { class: "mark" }, warning)), indexTables(report)),
    },
    drawn.length > 0 ? { id: "over-time", title: "Over time", heading: "Throughput over time", content: el("div", { class: "charts" }, drawn) } : null,
  ].filter(Boolean);
}
