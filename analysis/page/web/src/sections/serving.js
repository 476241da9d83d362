// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Rates that replicas were asked for: latency, use and what piled up.
import { el } from "../dom.js";
import { fixed, percent, seconds, si } from "../format.js";
import { table } from "../table.js";

const isRate = (row) => row.op === "serve" && row.part === "rate";
const time = (title) => ({ title, csv: `${title} / s`, number: true, text: seconds });
const rate = (title) => ({ title, number: true, text: (value) => si(value) });

const columns = [
  { title: "launch" }, { title: "point", number: true }, { title: "replicas", number: true }, { title: "dispatch" }, { title: "arrivals" },
  rate("offered/s"), rate("achieved/s"), { title: "requests", number: true }, time("latency"), time("p99"), time("max"), time("TTFT"), time("queueing"),
  { title: "utilisation", number: true, text: (value) => percent(value, 0) }, { title: "imbalance", number: true, text: (value) => fixed(value) },
  { title: "backlog", number: true }, { title: "saturated" }, { title: "highest" },
];

function cells({ run, point, row }) {
  return [
    run.id.slice(0, 8), point.index, row.replicas, row.dispatch, row.arrivals, row.offered, row.achieved, row.requests, row.latency.median, row.latency.p99,
    row.latency.max, row.ttft.median, row.queueing.median, row.utilisation, row.imbalance, row.backlog, row.saturated ? "yes" : "no", row.highest ? "*" : "",
  ];
}

/** @param {{run: object, point: object}[]} micro */
export function servingSection(micro) {
  const all = micro.flatMap(({ run, point }) => point.rows.filter(isRate).map((row) => ({ run, point, row })));
  if (all.length === 0) return null;
  const labels = [...new Set(all.flatMap(({ point }) => point.labels))];
  return {
    id: "serving",
    title: "Serving",
    content: el("div", {},
      labels.length > 0 ? el("p", { class: "mark" }, labels.join(", ")) : null,
      el("p", { class: "saying" }, "Latency: arrival to last token. TTFT: arrival to first token. Queueing: arrival to the start of the request's batch. " +
        "Saturated: requests pile up, or are later than was asked for. The highest rate (*) of a search was sustained."),
      table(columns, all.map(cells), { caption: "replicas under a stream of requests", most: 40 })),
  };
}
