// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Ranks side by side: where their time goes, and how steady they are, as heat maps.
import { el } from "../dom.js";
import { percent, seconds } from "../format.js";
import { changingChart, pointContent } from "../select.js";
import { everyNth, heatCells, hostAxis, hostBlocks, hostLines, reach, scale } from "./heat.js";

const quantities = [
  { key: "step", title: "step" },
  { key: "compute", title: "compute" },
  { key: "copies", title: "copies" },
  { key: "transfer", title: "transfer" },
  { key: "wait", title: "wait" },
  { key: "bubble", title: "bubble" },
  { key: "gap", title: "gap" },
  // Ideally this is zero, so its deviation is from zero and not from the median.
  { key: "caused_wait", title: "caused", absolute: true },
];

const known = (value) => typeof value === "number";

const rowName = (map, row) => `rank ${map.world_rank[row]}`;
const rowTitle = (map, row) => `${rowName(map, row)} on ${map.hosts[map.host[row]]}`;
const shownText = (map, point) => (map.rank.length < point.ranks ? `${map.rank.length} of ${point.ranks} ranks: the first, the slowest, and some between; ` : "");

function deviations(map) {
  const reference = map.median.step;
  // The wait that a rank caused is a sum over the ranks that waited; this divides it by their
  // number.
  const others = Math.max(1, map.traced - 1);
  return quantities
    .filter(({ key }) => map[key]?.some(known))
    .map(({ key, title, absolute }) => {
      const middle = absolute ? 0 : map.median[key];
      return {
        title,
        absolute,
        seconds: map[key],
        value: map[key].map((value) => (known(value) && reference ? (value - middle) / reference / (absolute ? others : 1) : null)),
      };
    });
}

/** Names the rank that stands out most, in a sentence; "" if none does. */
function outstanding(map, columns) {
  const column = columns.find(({ title }) => title === "compute") ?? columns[0];
  const row = column.value.reduce((best, value, at) => (value > (column.value[best] ?? 0) ? at : best), 0);
  const value = column.value[row];
  if (!(value > 0.02)) return "";
  const what = column.title === "compute" ? "computes" : "takes";
  const title = rowTitle(map, row);
  return `${title[0].toUpperCase()}${title.slice(1)} ${what} ${percent(value)} of a step longer than the median rank.`;
}

const rowHeight = (rows) => (rows <= 32 ? 18 : Math.max(3, 640 / rows));
const chartHeight = (map) => Math.round(map.rank.length * rowHeight(map.rank.length)) + 110;
const isNarrow = () => window.innerWidth < 520;

function rankAxis(map, rows) {
  return {
    type: "category",
    data: rows,
    inverse: true,
    axisTick: { show: false },
    axisLine: { show: false },
    axisLabel: { interval: everyNth(rowHeight(rows.length)), formatter: (_, row) => rowName(map, row), width: 120, overflow: "truncate" },
  };
}

function frame(map, blocks, colours) {
  const rows = map.rank.map((_, row) => String(row));
  return {
    grid: { bottom: 46, top: 40 },
    yAxis: [
      rankAxis(map, rows),
      hostAxis(blocks, rows, { inverse: true, position: "right" }),
    ],
    lines: hostLines(blocks, colours, "y"),
  };
}

function mapChart(map, point, columns) {
  const blocks = hostBlocks(map.hosts, map.host);
  const items = columns.flatMap((column, x) =>
    column.value.flatMap((value, y) => (value === null ? [] : [[x, y, value]])));
  const most = reach(items.map((item) => item[2]), 0.01);
  return changingChart({
    id: "rank-map",
    title: `Where ${point.ranks} ranks spend their time`,
    note: `${shownText(map, point)}against the median rank, in percent of a step (${seconds(map.median.step)}); ` +
      "caused, which is absolute and not against a median: how long each other rank waited for this one, on average; " +
      "a cell without a number differs by less than 0.05%, a column or cell that is missing is unknown",
    legend: false,
    height: chartHeight(map),
    table: {
      columns: [
        { title: "rank", number: true }, { title: "host" },
        ...columns.map(({ title }) => ({ title, csv: `${title} / s`, number: true, text: seconds })),
        ...columns.map(({ title }) => ({ title: `${title}, of a step`, csv: `${title} / step`, number: true, text: (value) => percent(value) })),
      ],
      rows: map.world_rank.map((rank, row) => [
        rank, map.hosts[map.host[row]],
        ...columns.map((column) => column.seconds[row]), ...columns.map((column) => column.value[row])]),
    },
    option: (colours) => {
      const { lines, ...shared } = frame(map, blocks, colours);
      return {
        ...shared,
        xAxis: {
          type: "category",
          data: columns.map(({ title }) => title),
          position: "top",
          axisTick: { show: false },
          axisLine: { show: false },
          axisLabel: { interval: 0, hideOverlap: false, rotate: isNarrow() ? 45 : 0 },
        },
        visualMap: scale(colours, most, ["more time", "less"], { formatter: (value) => percent(value, 0) }),
        tooltip: {
          formatter: ({ value: [x, y, value] }) => {
            const column = columns[x];
            const against = column.absolute
              ? `added up over all that waited, ${percent(value)} of a step for each other rank`
              : `${value < 0 ? "" : "+"}${percent(value)} of a step against the median`;
            return `${rowTitle(map, y)}\n${column.title}: ${seconds(column.seconds[y])}, ${against}`;
          },
        },
        series: [
          heatCells("ranks", items, {
            border: map.rank.length <= 96 ? colours.background : null,
            label: (item) =>
              map.rank.length <= 32 && !isNarrow() && Math.abs(item[2]) >= 0.0005
                // Text on the strong colours at the ends of the scale needs the other colour.
                ? { text: (100 * item[2]).toFixed(1), fill: Math.abs(item[2]) > 0.6 * most ? colours.background : colours.text }
                : null,
          }),
          lines,
        ],
      };
    },
  });
}

function cellsChart(map, point) {
  const { cells } = map;
  if (!cells || cells.first.length === 0) return null;
  const blocks = hostBlocks(map.hosts, map.host);
  const items = cells.time.flatMap((row, y) => row.flatMap((value, x) => (known(value) ? [[x, y, value]] : [])));
  const most = reach(items.map((item) => item[2]), 0.01);
  const steps = cells.every > 1 ? `step, first of ${cells.every}` : "step";
  return changingChart({
    id: "rank-steps",
    title: `${point.ranks} ranks, step by step`,
    note: `${shownText(map, point)}a rank's step time against the median of all ranks in that step` +
      (cells.every > 1 ? `; each column is ${cells.every} steps` : "") +
      ". A row shows a slow rank, a block a slow host, a dot noise.",
    legend: false,
    height: chartHeight(map),
    table: {
      columns: [
        { title: "rank", number: true }, { title: "host" },
        ...cells.first.map((step) => ({ title: `step ${step}`, number: true, text: (value) => percent(value) })),
      ],
      rows: map.world_rank.map((rank, row) => [rank, map.hosts[map.host[row]], ...cells.time[row]]),
    },
    option: (colours) => {
      const { lines, ...shared } = frame(map, blocks, colours);
      return {
        ...shared,
        xAxis: {
          type: "category",
          data: cells.first.map(String),
          position: "top",
          name: steps,
          nameLocation: "middle",
          nameGap: 22,
          axisTick: { show: false },
          axisLine: { show: false },
        },
        visualMap: scale(colours, most, ["slower", "faster"], { formatter: (value) => percent(value, 1) }),
        tooltip: {
          formatter: ({ value: [x, y, value] }) =>
            `${rowTitle(map, y)}\nstep ${cells.first[x]}: ${value < 0 ? "" : "+"}${percent(value)} against the median rank`,
        },
        series: [
          heatCells("steps", items),
          lines,
        ],
      };
    },
  });
}

/** @param {object[]} groups of detailed() */
export function ranksSection(groups) {
  const many = (point) => point.details.rank_map?.rank.length > 1;
  if (!groups.some((group) => group.points.some(many))) return null;
  return {
    id: "ranks",
    title: "Ranks",
    content: pointContent(groups, (point) => {
      const map = point.details.rank_map;
      if (!many(point)) return [el("p", { class: "note" }, "One rank: nothing to compare it with.")];
      const columns = deviations(map);
      const said = outstanding(map, columns);
      return [
        said ? el("p", { class: "saying" }, said) : null,
        el("div", { class: "charts" }, mapChart(map, point, columns), cellsChart(map, point)),
      ];
    }),
  };
}
