// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows latency and bandwidth between ranks as a matrix of pairs, with hosts as blocks and slow pairs outlined.
import { bandwidth, columns, el, groupBy, known, median, oneOf, percent, seconds, signedPercent, statusText } from "../kit.js";
import { cellAt, cellAxis, everyNth, heatCells, hostAxis, hostBlocks, hostLines, reach, scale } from "./ranks.js";

/** The quantities of a pair, with the words for larger (`more`) and smaller (`less`) values. */
const quantities = {
  bandwidth: { key: "bandwidth", title: "bandwidth", text: bandwidth, more: "faster", less: "slower" },
  latency: { key: "latency", title: "one-way latency", text: seconds, more: "slower", less: "faster" },
  "both ways": { key: "bidirectional", title: "bandwidth of both directions at once", text: bandwidth, more: "faster", less: "slower" },
};
const quantityOf = (key) => Object.values(quantities).find((at) => at.key === key) ?? { title: key, text: bandwidth };
const isPair = (row) => row.op === "p2p" && row.src !== undefined;
/** Replaces the ranks of pairs by their MPI ranks, which people are shown. */
const inLaunch = (pairs) => pairs.map((pair) => ({ ...pair, src: pair.src_world_rank, dst: pair.dst_world_rank }));

/** Returns the blocks of ranks by host, for these ranks of the launch; none if a host is unknown. */
function blocksOf(run, ranks) {
  const { places, ranks: all } = run.system ?? {};
  const hostOf = new Map(places ? places.rank.map((rank, i) => [rank, places.host[i]]) : (all ?? []).map((at) => [at.rank, at.host]));
  const names = ranks.map((rank) => hostOf.get(rank));
  if (names.includes(undefined)) return [];
  const hosts = [...new Set(names)];
  return hostBlocks(hosts, names.map((name) => hosts.indexOf(name)));
}

/** Returns a function for the deviation of a pair's value from the median of its class of link. */
function againstClass(pairs, key) {
  const middles = new Map([...groupBy(pairs, (pair) => pair.class)].map(([name, own]) => [name, median(own.map((pair) => pair[key]))]));
  return (pair) => (known(pair[key]) && middles.get(pair.class) ? pair[key] / middles.get(pair.class) - 1 : null);
}

/** Draws outlines around the cells of slow pairs. */
const outlines = (cells, colours) => ({
  type: "custom", name: "\0slow", silent: true, z: 6, data: cells,
  renderItem: (_, api) => ({
    type: "rect", shape: cellAt(api, 6), style: { fill: "none", stroke: colours.bad, lineWidth: api.size([1, 1])[0] < 16 ? 1.2 : 2 },
  }),
});

const numbersOf = (slow) => columns("from:count=src, to:count=dst, class, bandwidth, latency, both ways=bidirectional", {
  slow: ({ src, dst }) => slow.filter((at) => at.src === src && at.dst === dst).map((at) => at.quantity).join(" "), status: statusText,
});

function coloursOf(colours, state, quantity, values) {
  if (state.colour === "against its class") {
    // Red always means slow, also for bandwidth, where slow values are low.
    const ways = quantity.key === "latency" ? colours.diverging : [...colours.diverging].reverse();
    return scale(colours, reach(values, 0.05), [quantity.more, quantity.less], { inRange: { color: ways }, formatter: (value) => percent(value, 0) });
  }
  const least = Math.min(...values);
  const most = Math.max(...values);
  return scale(colours, 0, [quantity.text(most), quantity.text(least)], { min: least, max: most > least ? most : least * 1.01 + 1e-12, inRange: { color: colours.ramp } });
}

function matrixBlock(run, point, slow) {
  const pairs = inLaunch(point.rows.filter(isPair));
  const present = Object.keys(quantities).filter((name) => pairs.some((pair) => known(pair[quantities[name].key])));
  const table = { columns: numbersOf(slow), items: pairs };
  if (present.length === 0) return [{ note: "Of no pair a number is known." }, { table }];
  const ranks = [...new Set(pairs.flatMap((pair) => [pair.src, pair.dst]))].sort((a, b) => a - b);
  const names = ranks.map(String);
  const place = new Map(ranks.map((at, i) => [at, i]));
  const placeOf = (pair) => [place.get(pair.dst), place.get(pair.src)];
  const blocks = blocksOf(run, ranks);
  const hasBlocks = blocks.length > 1;
  // The matrix is square even in a narrow window.
  const side = Math.min(Math.max(16, Math.min(34, 560 / ranks.length)), 720 / ranks.length, Math.max(200, window.innerWidth - 150) / ranks.length);
  const failed = pairs.filter((pair) => pair.status !== "ok").length;
  const option = (colours, state) => {
    const quantity = quantities[state.what];
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
  const { title, text } = quantityOf(at.quantity);
  return `${at.from} to ${at.to}: ${title} ${text(at.value)}, ${percent(speedOf(at), 0)} of the speed that is usual (${text(at.typical)}${at.class ? `, ${at.class}` : ""})`;
}

/** Returns each slow pair once for both directions, with the quantity in which it is slowest, the slowest first. */
const slowPairs = (slow) => [...groupBy(slow, (at) => [at.src, at.dst].sort((x, y) => x - y).join(" ")).values()]
  .map((same) => same.reduce((worst, at) => (speedOf(at) < speedOf(worst) ? at : worst))).sort((x, y) => speedOf(x) - speedOf(y));

/** Returns a sentence on the rank that more than half of at least four slow pairs have in common; null if there is none. */
function commonEnd(pairs) {
  const ends = [...groupBy(pairs.flatMap((at) => [at.from, at.to]), (end) => end)].map(([name, all]) => [name, all.length]);
  const [name, times] = ends.reduce((best, at) => (at[1] > best[1] ? at : best), ["", 0]);
  return pairs.length >= 4 && times > pairs.length / 2 ? `${times} of ${pairs.length} slow pairs have one end in common: ${name}` : null;
}

/** Returns the number of slow pairs in each quantity; the matrix outlines only the pairs that are slow in the quantity it
 * shows. */
const slowCounts = (slow) => Object.entries(quantities)
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
  const slow = inLaunch(point.slow_pairs ?? []);
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
