// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Compares ranks in heat maps: where their time goes, and how much their step times vary.
import { known, percent, seconds, signedPercent } from "../format.js";
import { pointContent } from "../select.js";
import { count, share, time, words } from "../table.js";
import { cellAxis, everyNth, heatCells, hostAxis, hostBlocks, hostLines, reach, scale } from "./heat.js";

const quantities = ["step", "compute", "copies", "transfer", "wait", "bubble", "gap", "caused_wait"];

const rowTitle = (map, row) => `rank ${map.world_rank[row]} on ${map.hosts[map.host[row]]}`;

/**
 * Returns the columns of the map: {title, absolute, seconds[], value[]}; a value is a deviation
 * relative to the median step.
 */
function deviations(map) {
  const reference = map.median.step;
  // The wait that a rank caused is a sum over the ranks that waited; this divides it by their
  // number.
  const others = Math.max(1, map.traced - 1);
  return quantities.filter((key) => map[key]?.some(known)).map((key) => {
    // Ideally a rank causes no wait, so the deviation of caused wait is from zero and not from the
    // median.
    const absolute = key === "caused_wait";
    const middle = absolute ? 0 : map.median[key];
    const value = (at) => (known(at) && reference ? (at - middle) / reference / (absolute ? others : 1) : null);
    return { title: absolute ? "caused" : key, absolute, seconds: map[key], value: map[key].map(value) };
  });
}

/** Names the rank that stands out most, in a sentence; "" if none does. */
function outstanding(map, columns) {
  const column = columns.find(({ title }) => title === "compute") ?? columns[0];
  const row = column.value.reduce((best, value, at) => (value > (column.value[best] ?? 0) ? at : best), 0);
  const value = column.value[row];
  if (!(value > 0.02)) return "";
  const title = rowTitle(map, row);
  return `${title[0].toUpperCase()}${title.slice(1)} ${column.title === "compute" ? "computes" : "takes"} ${percent(value)} of a step longer than the median rank.`;
}

const rowHeight = (rows) => (rows <= 32 ? 18 : Math.max(3, 640 / rows));
const isNarrow = () => window.innerWidth < 520;

/**
 * Describes a heat map with a row for each rank.
 * @param {object} of a chart's description without `option`, and values: [column][row]; xAxis;
 *   ends: words for the ends of the scale, of values with so many `places`; tip: (column, row,
 *   value) => string; cells: own settings of heatCells, a function of the colours and the reach
 */
function rankChart(map, point, { values, xAxis, ends, places, tip, cells = () => ({}), columns, note, ...spec }) {
  const items = values.flatMap((column, x) => column.flatMap((value, y) => (known(value) ? [[x, y, value]] : [])));
  const most = reach(items.map((item) => item[2]), 0.01);
  const blocks = hostBlocks(map.hosts, map.host);
  const rows = map.rank.map((_, row) => String(row));
  const height = rowHeight(rows.length);
  const shown = rows.length < point.ranks ? `${rows.length} of ${point.ranks} ranks: the first, the slowest, and some between; ` : "";
  return {
    ...spec,
    note: shown + note,
    legend: false,
    height: Math.round(rows.length * height) + 110,
    table: { columns: [count("rank", (row) => map.world_rank[row]), words("host", (row) => map.hosts[map.host[row]]), ...columns], items: rows },
    option: (colours) => ({
      grid: { bottom: 46, top: 40 },
      xAxis: cellAxis(xAxis.data, { position: "top", ...xAxis }),
      yAxis: [
        cellAxis(rows, { inverse: true, axisLabel: { interval: everyNth(height), formatter: (_, row) => `rank ${map.world_rank[row]}`, width: 120, overflow: "truncate" } }),
        hostAxis(blocks, rows, { inverse: true, position: "right" })],
      visualMap: scale(colours, most, ends, { formatter: (value) => percent(value, places) }),
      tip: ({ value: [x, y, value] }) => `${rowTitle(map, y)}\n${tip(x, y, value)}`,
      series: [heatCells(spec.id, items, cells(colours, most)), hostLines(blocks, colours, "y")],
    }),
  };
}

function mapChart(map, point, columns) {
  const isLabelled = map.rank.length <= 32 && !isNarrow();
  return rankChart(map, point, {
    id: "rank-map",
    title: `Where ${point.ranks} ranks spend their time`,
    note: `against the median rank, in percent of a step (${seconds(map.median.step)}); ` +
      "caused, which is absolute and not against a median: how long each other rank waited for this one, on average; " +
      "a cell without a number differs by less than 0.05%, a column or cell that is missing is unknown",
    values: columns.map(({ value }) => value),
    columns: [
      ...columns.map((column) => time(column.title, (row) => column.seconds[row])),
      ...columns.map((column) => ({ ...share(`${column.title}, of a step`, (row) => column.value[row]), csv: `${column.title} / step` }))],
    xAxis: { data: columns.map(({ title }) => title), axisLabel: { interval: 0, hideOverlap: false, rotate: isNarrow() ? 45 : 0 } },
    ends: ["more time", "less"],
    places: 0,
    tip: (x, y, value) => {
      const { title, absolute, seconds: all } = columns[x];
      const against = absolute ? `added up over all that waited, ${percent(value)} of a step for each other rank`
        : `${signedPercent(value)} of a step against the median`;
      return `${title}: ${seconds(all[y])}, ${against}`;
    },
    cells: (colours, most) => ({
      border: map.rank.length <= 96 ? colours.background : null,
      // Text on the strong colours at the ends of the scale has the background colour.
      label: ([, , value]) => (isLabelled && Math.abs(value) >= 0.0005
        ? { text: (100 * value).toFixed(1), fill: Math.abs(value) > 0.6 * most ? colours.background : colours.text } : null),
    }),
  });
}

function cellsChart(map, point) {
  const { cells } = map;
  if (!cells || cells.first.length === 0) return null;
  const several = cells.every > 1;
  return rankChart(map, point, {
    id: "rank-steps",
    title: `${point.ranks} ranks, step by step`,
    note: `a rank's step time against the median of all ranks in that step${several ? `; each column is ${cells.every} steps` : ""}` +
      ". A row shows a slow rank, a block a slow host, a dot noise.",
    values: cells.first.map((_, x) => cells.time.map((row) => row[x])),
    columns: cells.first.map((step, x) => share(`step ${step}`, (row) => cells.time[row][x])),
    xAxis: { data: cells.first.map(String), name: several ? `step, first of ${cells.every}` : "step", nameGap: 22 },
    ends: ["slower", "faster"],
    places: 1,
    tip: (x, y, value) => `step ${cells.first[x]}: ${signedPercent(value)} against the median rank`,
  });
}

const many = (point) => point.details.rank_map?.rank.length > 1;

/** @param {object[]} groups of detailed() */
export function ranksSection(groups) {
  if (!groups.some((group) => group.points.some(many))) return null;
  return {
    id: "ranks",
    title: "Ranks",
    blocks: [pointContent(groups, (point) => {
      if (!many(point)) return [{ note: "One rank: nothing to compare it with." }];
      const map = point.details.rank_map;
      const columns = deviations(map);
      return [{ saying: outstanding(map, columns) }, { charts: [mapChart(map, point, columns), cellsChart(map, point)] }];
    })],
  };
}
