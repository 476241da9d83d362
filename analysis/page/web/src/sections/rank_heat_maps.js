// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Compares ranks in heat maps: where their time goes, how their step times vary, and the latency
// and bandwidth between pairs of ranks as a matrix, with slow pairs outlined. Rows of one host form
// a block in all maps.
import {
  bandwidth, column, columns, el, groupBy, isNarrow, known, largestBy, lined, median, oneOf, percent, pointContent, pointTip, seconds,
  signedPercent, statusText,
} from "../reexports.js";

/** Returns the rectangle of a heat map's cell [x, y], at least `least` pixels wide and high. */
function cellAt(api, least = 0) {
  const [x, y] = api.coord([api.value(0), api.value(1)]);
  const [width, height] = api.size([1, 1]).map((size) => Math.max(size, least));
  return { x: x - width / 2, y: y - height / 2, width, height };
}

/** Makes the cells of a heat map from items [x, y, value]; a visual map colours them by value.
 * border: a colour, or null. label(item) returns {text, fill}, or null. The series is custom,
 * since ECharts 6 paints series of type heatmap in several passes on separate layers, and printing
 * does not wait for these passes. */
const heatCells = (name, items, { border = null, label = () => null } = {}) => ({
  type: "custom", name, data: items, dimensions: ["x", "y", "value"], encode: { x: 0, y: 1, tooltip: 2 }, z: 2,
  renderItem(params, api) {
    const cell = cellAt(api);
    // Bounds are whole pixels, so that the background does not shine through between cells.
    const [x, y] = [Math.round(cell.x), Math.round(cell.y)];
    const words = label(items[params.dataIndexInside]);
    return {
      type: "rect",
      shape: { x, y, width: Math.round(cell.x + cell.width) - x, height: Math.round(cell.y + cell.height) - y },
      style: { fill: api.visual("color"), stroke: border ?? "none", lineWidth: border ? 1 : 0 },
      emphasis: { style: { lineWidth: 1.5, stroke: "#888" } },
      ...(words ? { textContent: { style: { ...words, fontSize: 11 } }, textConfig: { position: "inside" } } : {}),
    };
  },
});

/** Returns the blocks of consecutive rows of one host, by its name: [{name, first, last}]. */
function hostBlocks(names) {
  const blocks = [];
  names.forEach((name, row) => {
    if (blocks.at(-1)?.name === name) blocks.at(-1).last = row;
    else blocks.push({ name, first: row, last: row });
  });
  return blocks;
}

const cellAxis = (data, own) => ({ type: "category", axisLine: { show: false }, data, ...own });

/** Makes an axis with each host's name in the middle of the host's rows. */
function hostAxis(blocks, rows, own) {
  const middles = new Map(blocks.map((block) => [(block.first + block.last) >> 1, block.name]));
  const axisLabel = {
    interval: (index) => middles.has(index), formatter: (_, index) => middles.get(index) ?? "", width: 110, overflow: "truncate",
  };
  return cellAxis(rows, { axisLabel, ...own });
}

/** Draws lines before `rows` over the whole width, or before columns if `along` is "x". */
export const linesBefore = (rows, name, style, along = "y", z = 5) => ({
  type: "custom", name: `\0${name}`, silent: true, z, data: rows.map((row) => [row, row]),
  encode: { x: along === "x" ? 0 : [], y: along === "y" ? 0 : [], tooltip: [] },
  renderItem({ coordSys: { x, y, width, height } }, api) {
    const at = api.value(0);
    const middle = api.coord(along === "y" ? [0, at] : [at, 0]);
    const size = api.size([1, 1]);
    const [left, top] = [middle[0] - size[0] / 2, middle[1] - size[1] / 2];
    const shape = along === "y" ? { x1: x, x2: x + width, y1: top, y2: top } : { x1: left, x2: left, y1: y, y2: y + height };
    return { type: "line", shape, style: { lineWidth: 1, ...style } };
  },
});

/** Draws lines between the hosts' blocks of a heat map. */
const hostLines = (blocks, colours, along) =>
  linesBefore(blocks.slice(1).map(({ first }) => first), "hosts", { stroke: colours.text, opacity: 0.55 }, along);

/** Makes the colour scale below a heat map, by default from -`most` to `most`. `words` are those at
 * its upper and lower end, followed by values if `own` has a formatter. */
const scale = (colours, most, words, own = {}) => ({
  type: "continuous", min: -most, max: most, calculable: false, orient: "horizontal", left: "center", bottom: 0, itemWidth: 12, itemHeight: 140,
  text: own.formatter ? [`${words[0]}: +${own.formatter(most)}`, `${words[1]}: \u2212${own.formatter(most)}`] : words,
  textStyle: { color: colours.faint }, inRange: { color: colours.diverging }, seriesIndex: 0, dimension: 2, ...own,
});

/** Returns the end of a colour scale, beyond which 0.5% of the values lie: it ignores outliers. */
function reach(values, least) {
  const sizes = values.filter(known).map(Math.abs).sort((a, b) => a - b);
  return Math.max(least, sizes[Math.floor(0.995 * (sizes.length - 1))] ?? 0);
}

/** Returns a function that is true for rows with a label: all, or every nth if rows are too low. */
function everyNth(height) {
  const nth = 2 ** Math.max(0, Math.ceil(Math.log2(13 / height)));
  return (row) => row % nth === 0;
}

const quantities = ["step", "compute", "copies", "transfer", "wait", "bubble", "gap", "caused_wait"];
const rowTitle = (map, row) => `rank ${map.world_rank[row]} on ${map.hosts[map.host[row]]}`;

/** Returns the quantities of a rank map: {title, absolute, seconds[row], value[row]}. A value is a
 * deviation from the median rank, or from 0 if `absolute`, as a share of the median step. */
function deviations(map) {
  const reference = map.median.step;
  return quantities.filter((key) => map[key]?.some(known)).map((key) => {
    // Ideally a rank causes no wait, so caused wait is compared with zero. It is a sum over the
    // ranks that waited, so it is divided by the number of other traced ranks.
    const absolute = key === "caused_wait";
    const middle = absolute ? 0 : map.median[key];
    const others = absolute ? Math.max(1, map.traced - 1) : 1;
    const value = (at) => (known(at) && reference ? (at - middle) / reference / others : null);
    return { title: absolute ? "caused" : key, absolute, seconds: map[key], value: map[key].map(value) };
  });
}

/** Tells which rank computes longest, if that is over 2% of a step longer than the median rank. */
function outstanding(map, shown) {
  const { title, value } = shown.find((at) => at.title === "compute") ?? shown[0];
  const row = value.reduce((best, of, at) => (of > (value[best] ?? 0) ? at : best), 0);
  if (!(value[row] > 0.02)) return "";
  return `${rowTitle(map, row).replace("rank", "Rank")} ${title === "compute" ? "computes" : "takes"} ${percent(value[row])} of a step longer than the median rank.`;
}

/** Describes a heat map with a row for each rank. It takes a chart's description without `option`,
 * and these keys:
 * - values: [column][row]; and xAxis: settings of the axis of columns
 * - ends: words for the upper and the lower end of the scale
 * - places: decimal places of the values at these ends
 * - tip(column, row, value): returns a tooltip's text
 * - cells(colours, most): returns settings for heatCells(); `most` is the end of the scale
 * - numbers: the table's columns after rank and host */
function rankChart(map, point, { values, xAxis, ends, places, tip, cells = () => ({}), numbers, note, ...spec }) {
  const items = values.flatMap((of, x) => of.flatMap((value, y) => (known(value) ? [[x, y, value]] : [])));
  const most = reach(items.map((item) => item[2]), 0.01);
  const blocks = hostBlocks(map.host.map((at) => map.hosts[at]));
  const rows = map.rank.map((_, row) => String(row));
  const height = rows.length <= 32 ? 18 : Math.max(3, 640 / rows.length);
  const shown = rows.length < point.ranks ? `${rows.length} of ${point.ranks} ranks: the first, the slowest, and some between; ` : "";
  return {
    ...spec,
    note: shown + note, legend: false, height: Math.round(rows.length * height) + 110,
    table: { columns: columns("", column("rank", (row) => map.world_rank[row], { form: "count" }), { host: (row) => map.hosts[map.host[row]] }, numbers), items: rows },
    option: (colours) => ({
      grid: { bottom: 46, top: 40 },
      xAxis: cellAxis(xAxis.data, { position: "top", ...xAxis }),
      yAxis: [
        cellAxis(rows, { inverse: true, axisLabel: { interval: everyNth(height), formatter: (_, row) => `rank ${map.world_rank[row]}`, width: 120, overflow: "truncate" } }),
        hostAxis(blocks, rows, { inverse: true, position: "right" })],
      visualMap: scale(colours, most, ends, { formatter: (value) => percent(value, places) }),
      tip: ({ value: [x, y, value] }) => lined(rowTitle(map, y), tip(x, y, value), pointTip(point)),
      series: [heatCells(spec.id, items, cells(colours, most)), hostLines(blocks, colours, "y")],
    }),
  };
}

const share = (title, value, own) => column(title, value, { form: "share", ...own });

function mapChart(map, point, shown) {
  const isLabelled = map.rank.length <= 32 && !isNarrow();
  return rankChart(map, point, {
    id: "rank-map", title: `Where ${point.ranks} ranks spend their time`,
    note: `against the median rank, in percent of a step (${seconds(map.median.step)}); ` +
      "caused, which is absolute and not against a median: how long each other rank waited for this one, on average; " +
      "a cell without a number differs by less than 0.05%, a column or cell that is missing is unknown",
    values: shown.map(({ value }) => value),
    numbers: [
      ...shown.map(({ title, seconds: all }) => column(title, (row) => all[row], { form: "seconds" })),
      ...shown.map(({ title, value }) => share(`${title}, of a step`, (row) => value[row], { csv: `${title} / step` }))],
    xAxis: { data: shown.map(({ title }) => title), axisLabel: { interval: 0, hideOverlap: false, rotate: isNarrow() ? 45 : 0 } },
    ends: ["more time", "less"], places: 0,
    tip: (x, y, value) => {
      const { title, absolute, seconds: all } = shown[x];
      const against = absolute ? `added up over all that waited, ${percent(value)} of a step for each other rank`
        : `${signedPercent(value)} of a step against the median`;
      return `${title}: ${seconds(all[y])}, ${against}`;
    },
    cells: (colours, most) => ({
      border: map.rank.length <= 96 ? colours.background : null,
      // Labels on the strong colours near the ends of the scale have the background's colour.
      label: ([, , value]) => (isLabelled && Math.abs(value) >= 0.0005
        ? { text: (100 * value).toFixed(1), fill: Math.abs(value) > 0.6 * most ? colours.background : colours.text } : null),
    }),
  });
}

function cellsChart(map, point) {
  const { first = [], time, every } = map.cells ?? {};
  if (first.length === 0) return null;
  return rankChart(map, point, {
    id: "rank-steps", title: `${point.ranks} ranks, step by step`,
    note: `a rank's step time against the median of all ranks in that step${every > 1 ? `; each column is ${every} steps, with their largest difference` : ""}` +
      ". A row shows a slow rank, a block a slow host, a dot noise.",
    values: first.map((_, x) => time.map((row) => row[x])),
    numbers: first.map((step, x) => share(`step ${step}`, (row) => time[row][x])),
    xAxis: { data: first.map(String), name: every > 1 ? `step, first of ${every}` : "step", nameGap: 22 },
    ends: ["slower", "faster"], places: 1,
    tip: (x, y, value) => `step ${first[x]}: ${signedPercent(value)} against the median rank`,
  });
}

const many = (details) => details.rank_map?.rank.length > 1;

export const ranksBlocks = ({ curves }) => [pointContent(curves, many, (point) => {
  if (!many(point.details)) return [{ note: "One rank: nothing to compare it with." }];
  const map = point.details.rank_map;
  const shown = deviations(map);
  return [{ saying: outstanding(map, shown) }, { charts: [mapChart(map, point, shown), cellsChart(map, point)] }];
})];

/** The quantities of a pair of ranks; `more` and `less` are words for larger and smaller values. */
const pairQuantities = {
  bandwidth: { key: "bandwidth", title: "bandwidth", text: bandwidth, more: "faster", less: "slower" },
  latency: { key: "latency", title: "one-way latency", text: seconds, more: "slower", less: "faster" },
  "both ways": { key: "bidirectional", title: "bandwidth of both directions at once", text: bandwidth, more: "faster", less: "slower" },
};
const isPair = (row) => row.op === "p2p" && row.src !== undefined;
/** Replaces the ranks of pairs, counted within the point, by MPI ranks, which the page shows. */
const inLaunch = (pairs) => pairs.map((pair) => ({ ...pair, src: pair.src_world_rank, dst: pair.dst_world_rank }));

/** Returns the hostBlocks() of these MPI ranks; [] if the host of a rank is not known. */
function hostsOfRanks(run, ranks) {
  const { places } = run.system;
  const names = ranks.map((rank) => places.host[places.rank.indexOf(rank)]);
  return names.includes(undefined) ? [] : hostBlocks(names);
}

/** Returns a function for the deviation of a pair's value from the median of its link class. */
function againstClass(pairs, key) {
  const middles = new Map([...groupBy(pairs, (pair) => pair.class)].map(([name, own]) => [name, median(own.map((pair) => pair[key]))]));
  return (pair) => (known(pair[key]) && middles.get(pair.class) ? pair[key] / middles.get(pair.class) - 1 : null);
}

const outlines = (cells, colours) => ({
  type: "custom", name: "\0slow", silent: true, z: 6, data: cells,
  renderItem: (_, api) => ({
    type: "rect", shape: cellAt(api, 6), style: { fill: "none", stroke: colours.bad, lineWidth: api.size([1, 1])[0] < 16 ? 1.2 : 2 },
  }),
});

const numbersOf = (slow) => columns("class", "from:count=src, to:count=dst, class, bandwidth, latency, bidirectional", {
  slow: ({ src, dst }) => slow.filter((at) => at.src === src && at.dst === dst).map((at) => at.quantity).join(" "), status: statusText,
});

function coloursOf(colours, state, quantity, values) {
  if (state.colour === "against its class") {
    // Red always means slow, also for bandwidth, of which small values are slow.
    const ways = quantity.key === "latency" ? colours.diverging : [...colours.diverging].reverse();
    return scale(colours, reach(values, 0.05), [quantity.more, quantity.less], { inRange: { color: ways }, formatter: (value) => percent(value, 0) });
  }
  const least = Math.min(...values);
  const most = Math.max(...values);
  return scale(colours, 0, [quantity.text(most), quantity.text(least)], { min: least, max: most > least ? most : least * 1.01 + 1e-12, inRange: { color: colours.ramp } });
}

function matrixBlock(run, point, slow) {
  const pairs = inLaunch(point.rows.filter(isPair));
  const present = Object.keys(pairQuantities).filter((name) => pairs.some((pair) => known(pair[pairQuantities[name].key])));
  const table = { columns: numbersOf(slow), items: pairs };
  if (present.length === 0) return [{ note: "Of no pair a number is known." }, { table }];
  const ranks = [...new Set(pairs.flatMap((pair) => [pair.src, pair.dst]))].sort((a, b) => a - b);
  const names = ranks.map(String);
  const place = new Map(ranks.map((at, i) => [at, i]));
  const placeOf = (pair) => [place.get(pair.dst), place.get(pair.src)];
  const blocks = hostsOfRanks(run, ranks);
  const hasBlocks = blocks.length > 1;
  // The cells of the matrix are square, even in a narrow window. `side` is in pixels.
  const side = Math.min(Math.max(16, Math.min(34, 560 / ranks.length)), 720 / ranks.length, Math.max(200, window.innerWidth - 150) / ranks.length);
  const failed = pairs.filter((pair) => pair.status !== "ok").length;
  const option = (colours, state) => {
    const quantity = pairQuantities[state.what];
    const relative = againstClass(pairs, quantity.key);
    const shown = pairs.filter((pair) => known(pair[quantity.key]));
    const items = shown.map((pair) => [...placeOf(pair), state.colour === "value" ? pair[quantity.key] : relative(pair)]);
    const hosts = (own) => (hasBlocks ? [hostAxis(blocks, names, own)] : []);
    return {
      grid: { bottom: 46, top: hasBlocks ? 60 : 44, left: 24 },
      xAxis: [cellAxis(names, { position: "top", name: "to rank", nameGap: hasBlocks ? 38 : 24 }), ...hosts({ position: "top", offset: 15 })],
      yAxis: [
        cellAxis(names, { inverse: true, name: "from rank", nameLocation: "middle", nameGap: 28, axisLabel: { interval: everyNth(side) } }),
        ...hosts({ inverse: true, position: "right" })],
      visualMap: coloursOf(colours, state, quantity, items.map((item) => item[2])),
      tip: ({ dataIndex }) => {
        const pair = shown[dataIndex];
        const apart = relative(pair);
        return `rank ${pair.src} to rank ${pair.dst}${pair.class ? `, ${pair.class}` : ""}\n${quantity.title}: ${quantity.text(pair[quantity.key])}` +
          (apart === null ? "" : `, ${signedPercent(apart)} against its class`);
      },
      series: [
        heatCells("pairs", items, { border: ranks.length <= 40 ? colours.background : null }),
        ...(hasBlocks ? [hostLines(blocks, colours, "x"), hostLines(blocks, colours, "y")] : []),
        outlines(slow.filter((at) => at.quantity === quantity.key).map(placeOf), colours),
      ],
    };
  };
  return [{ charts: [{
    id: "pairs-matrix", title: `${point.ranks} ranks, each with each`,
    note: `outlined: slow, by what is shown, against the other pairs of its class of links${failed > 0 ? `; empty: ${failed} pairs that failed` : ""}`,
    switches: [{ name: "what", label: "show", choices: present }, { name: "colour", label: "colour", choices: ["value", "against its class"] }],
    legend: false,
    height: Math.round(ranks.length * side) + 120,
    table, option,
  }] }];
}

const speedOf = (at) => (at.quantity === "latency" ? at.typical / at.value : at.value / at.typical);

function slowText(at) {
  const { title, text } = Object.values(pairQuantities).find(({ key }) => key === at.quantity);
  return `${at.from} to ${at.to}: ${title} ${text(at.value)}, ${percent(speedOf(at), 0)} of the speed that is usual (${text(at.typical)}${at.class ? `, ${at.class}` : ""})`;
}

/** Returns each slow pair once, where it is slowest; the slowest pair comes first. */
const slowPairs = (slow) => [...groupBy(slow, (at) => [at.src, at.dst].sort((x, y) => x - y).join(" ")).values()]
  .map((same) => same.reduce((worst, at) => (speedOf(at) < speedOf(worst) ? at : worst))).sort((x, y) => speedOf(x) - speedOf(y));

/** Tells which rank is in more than half of the slow pairs; null if none is, or if there are fewer
 * than four slow pairs. */
function commonEnd(pairs) {
  if (pairs.length < 4) return null;
  const [name, { length }] = largestBy([...groupBy(pairs.flatMap((at) => [at.from, at.to]), (end) => end)], ([, same]) => same.length);
  return length > pairs.length / 2 ? `${length} of ${pairs.length} slow pairs have one end in common: ${name}` : null;
}

/** Counts slow pairs by quantity, since the matrix outlines only those in the one that it shows. */
const slowCounts = (slow) => Object.entries(pairQuantities)
  .map(([name, { key }]) => ({ name, pairs: slowPairs(slow.filter((at) => at.quantity === key)).length }))
  .filter(({ pairs }) => pairs > 0).map(({ name, pairs }) => `${pairs} by ${name}`).join(", ");

function slowList(slow) {
  const pairs = slowPairs(slow);
  if (pairs.length === 0) return { saying: "No pair is known to be slow against the others of its class." };
  const end = commonEnd(pairs);
  const most = end ? 3 : 8;
  const all = `${pairs.length === 1 ? "one pair" : `${pairs.length} pairs`} in all: ${slowCounts(slow)}; the picture outlines those of what it shows`;
  const said = [end && el("b", {}, end), ...pairs.slice(0, most).map(slowText), pairs.length > most && `${pairs.length - most} more`, all].filter(Boolean);
  return { list: said, most: said.length };
}

function pointBlocks({ run, point }) {
  const slow = inLaunch(point.slow_pairs);
  const others = point.rows.filter((row) => row.op === "p2p" && row.src === undefined && known(row.bandwidth));
  return [
    slowList(slow),
    { saying: others.map((row) => `${row.kind}: ${bandwidth(row.bandwidth)}${row.class ? ` (${row.class})` : ""}`).join("; ") },
    ...matrixBlock(run, point, slow)];
}

export function pairsBlocks({ micro }) {
  const all = micro.filter(({ point }) => point.rows.some(isPair)).sort((a, b) => b.point.ranks - a.point.ranks);
  return [oneOf("point", all.map(({ point }) => `${point.ranks} ranks, point ${point.index}`), (index) => pointBlocks(all[index]))];
}
