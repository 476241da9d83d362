// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Latency and bandwidth between ranks: a matrix of pairs, hosts as blocks, slow pairs outlined.
import { el } from "../dom.js";
import { percent, seconds, si } from "../format.js";
import { changingChart, oneOf } from "../select.js";
import { table } from "../table.js";
import { everyNth, heatCells, hostAxis, hostBlocks, hostLines, median, reach, scale } from "./heat.js";

const quantities = {
  bandwidth: { key: "bandwidth", title: "bandwidth", text: (value) => si(value, "B/s"), more: "faster", less: "slower" },
  latency: { key: "latency", title: "one-way latency", text: seconds, more: "slower", less: "faster" },
  "both ways": { key: "bidirectional", title: "bandwidth of both directions at once", text: (value) => si(value, "B/s"), more: "faster", less: "slower" },
};

const isPair = (row) => row.op === "p2p" && row.src !== undefined;
const known = (value) => typeof value === "number";

/** Converts pairs to the ranks of MPI, which people are shown. */
const inLaunch = (pairs) => pairs.map((pair) => ({ ...pair, src: pair.src_world_rank, dst: pair.dst_world_rank }));

/**
 * Returns the blocks of ranks by host, for these ranks of the launch; none if a host is unknown.
 */
function blocksOf(run, ranks) {
  const { places, ranks: all } = run.system ?? {};
  const hostOf = places ? new Map(places.rank.map((rank, i) => [rank, places.host[i]])) : new Map((all ?? []).map((at) => [at.rank, at.host]));
  const names = ranks.map((rank) => hostOf.get(rank));
  if (names.includes(undefined)) return [];
  const hosts = [...new Set(names)];
  return hostBlocks(hosts, names.map((name) => hosts.indexOf(name)));
}

/** Returns a pair's value relative to the median of its class. */
function againstClass(pairs, key) {
  const classes = new Map();
  for (const pair of pairs) classes.set(pair.class, [...(classes.get(pair.class) ?? []), pair[key]]);
  const middles = new Map([...classes].map(([name, values]) => [name, median(values)]));
  return (pair) => (known(pair[key]) && middles.get(pair.class) ? pair[key] / middles.get(pair.class) - 1 : null);
}

/** Draws outlines around the cells of slow pairs. */
function outlines(cells, colours) {
  return {
    type: "custom",
    name: "\0slow",
    silent: true,
    z: 6,
    data: cells,
    renderItem(_, api) {
      const [x, y] = api.coord([api.value(0), api.value(1)]);
      const [width, height] = api.size([1, 1]);
      const size = [Math.max(width, 6), Math.max(height, 6)];
      return {
        type: "rect",
        shape: { x: x - size[0] / 2, y: y - size[1] / 2, width: size[0], height: size[1] },
        style: { fill: "none", stroke: colours.bad, lineWidth: width < 16 ? 1.2 : 2 },
      };
    },
  };
}

function numbersOf(pairs, slow) {
  const isSlow = (pair) => slow.filter((at) => at.src === pair.src && at.dst === pair.dst).map((at) => at.quantity).join(" ");
  return {
    columns: [
      { title: "from", number: true }, { title: "to", number: true }, { title: "class" },
      { title: "bandwidth", csv: "bandwidth / B/s", number: true, text: (value) => si(value, "B/s") }, { title: "latency", csv: "latency / s", number: true, text: seconds },
      { title: "both ways", csv: "both ways / B/s", number: true, text: (value) => si(value, "B/s") }, { title: "slow" }, { title: "status" },
    ],
    rows: pairs.map((pair) => [
      pair.src, pair.dst, pair.class, pair.bandwidth, pair.latency, pair.bidirectional, isSlow(pair),
      pair.status === "ok" ? "ok" : `${pair.status}: ${pair.reason ?? ""}`]),
  };
}

function coloursOf(colours, state, quantity, items) {
  const values = items.map((item) => item[2]);
  if (state.colour === "against its class") {
    // Red always means slow, also for bandwidth, where slow values are low.
    const ways = quantity.key === "latency" ? colours.diverging : [...colours.diverging].reverse();
    return scale(colours, reach(values, 0.05), [quantity.more, quantity.less], { inRange: { color: ways }, formatter: (value) => percent(value, 0) });
  }
  const least = Math.min(...values);
  const most = Math.max(...values);
  return scale(colours, 0, [quantity.text(most), quantity.text(least)], { min: least, max: most > least ? most : least * 1.01 + 1e-12, inRange: { color: colours.ramp } });
}

function matrixChart(run, point) {
  const pairs = inLaunch(point.rows.filter(isPair));
  const ranks = [...new Set(pairs.flatMap((pair) => [pair.src, pair.dst]))].sort((a, b) => a - b);
  const place = new Map(ranks.map((rank, i) => [rank, i]));
  const blocks = blocksOf(run, ranks);
  const slow = inLaunch(point.slow_pairs ?? []);
  const present = Object.keys(quantities).filter((name) => pairs.some((pair) => known(pair[quantities[name].key])));
  const numbers = numbersOf(pairs, slow);
  if (present.length === 0) return el("div", { class: "wide" }, el("p", { class: "note" }, "Of no pair a number is known."), table(numbers.columns, numbers.rows));
  // The matrix is square, also in a narrow window.
  const side = Math.min(Math.max(16, Math.min(34, 560 / ranks.length)), 720 / ranks.length, Math.max(200, window.innerWidth - 150) / ranks.length);
  const failed = pairs.filter((pair) => pair.status !== "ok");
  return changingChart({
    id: "pairs-matrix",
    title: `${point.ranks} ranks, each with each`,
    note: `outlined: slow, by what is shown, against the other pairs of its class of links${failed.length > 0 ? `; empty: ${failed.length} pairs that failed` : ""}`,
    switches: [
      { name: "what", label: "show", choices: present },
      { name: "colour", label: "colour", choices: ["value", "against its class"] },
    ],
    legend: false,
    height: Math.round(ranks.length * side) + 120,
    table: numbers,
    option: (colours, state) => {
      const quantity = quantities[state.what];
      const relative = againstClass(pairs, quantity.key);
      const shown = pairs.filter((pair) => known(pair[quantity.key]));
      const byPlace = new Map(shown.map((pair) => [`${place.get(pair.dst)} ${place.get(pair.src)}`, pair]));
      const value = (pair) => (state.colour === "value" ? pair[quantity.key] : relative(pair));
      const items = shown.map((pair) => [place.get(pair.dst), place.get(pair.src), value(pair)]);
      const names = ranks.map(String);
      const marked = slow.filter((at) => at.quantity === quantity.key).map((at) => [place.get(at.dst), place.get(at.src)]);
      const axis = { type: "category", axisTick: { show: false }, axisLine: { show: false }, nameLocation: "middle" };
      return {
        grid: { bottom: 46, top: blocks.length > 1 ? 60 : 44, left: 24 },
        xAxis: [
          { ...axis, data: names, position: "top", name: "to rank", nameGap: blocks.length > 1 ? 38 : 24 },
          ...(blocks.length > 1 ? [hostAxis(blocks, names, { position: "top", offset: 15 })] : []),
        ],
        yAxis: [
          { ...axis, data: names, inverse: true, name: "from rank", nameGap: 28, axisLabel: { interval: everyNth(side) } },
          ...(blocks.length > 1 ? [hostAxis(blocks, names, { inverse: true, position: "right" })] : []),
        ],
        visualMap: coloursOf(colours, state, quantity, items),
        tooltip: {
          formatter: ({ value: [x, y] }) => {
            const pair = byPlace.get(`${x} ${y}`);
            const apart = relative(pair);
            return `rank ${pair.src} to rank ${pair.dst}${pair.class ? `, ${pair.class}` : ""}\n${quantity.title}: ${quantity.text(pair[quantity.key])}` +
              (apart === null ? "" : `, ${apart < 0 ? "" : "+"}${percent(apart)} against its class`);
          },
        },
        series: [
          heatCells("pairs", items, { border: ranks.length <= 40 ? colours.background : null }),
          ...(blocks.length > 1 ? [hostLines(blocks, colours, "x"), hostLines(blocks, colours, "y")] : []),
          outlines(marked, colours),
        ],
      };
    },
  });
}

const titleOf = (key) => Object.values(quantities).find((at) => at.key === key)?.title ?? key;

function slowText(at) {
  const text = at.quantity === "latency" ? seconds : (value) => si(value, "B/s");
  const speed = at.quantity === "latency" ? at.typical / at.value : at.value / at.typical;
  return `${at.from} to ${at.to}: ${titleOf(at.quantity)} ${text(at.value)}, ${percent(speed, 0)} of the speed that is usual (${text(at.typical)}${at.class ? `, ${at.class}` : ""})`;
}

/** Returns each slow pair once, whatever its direction, by the quantity in which it is slowest. */
function slowPairs(slow) {
  const speed = (at) => (at.quantity === "latency" ? at.typical / at.value : at.value / at.typical);
  const worst = new Map();
  for (const at of slow) {
    const key = [at.src, at.dst].sort((x, y) => x - y).join(" ");
    if (!worst.has(key) || speed(at) < speed(worst.get(key))) worst.set(key, at);
  }
  return [...worst.values()].sort((x, y) => speed(x) - speed(y));
}

/**
 * Returns a sentence on the rank that more than half of at least four slow pairs have in common;
 * null if there is none.
 */
function commonEnd(pairs) {
  const count = new Map();
  for (const at of pairs) {
    for (const end of [at.from, at.to]) count.set(end, (count.get(end) ?? 0) + 1);
  }
  const [name, times] = [...count].reduce((best, at) => (at[1] > best[1] ? at : best), ["", 0]);
  return pairs.length >= 4 && times > pairs.length / 2 ? `${times} of ${pairs.length} slow pairs have one end in common: ${name}` : null;
}

/**
 * Returns the number of slow pairs in each quantity; the picture outlines only those of its own.
 */
function slowCounts(slow) {
  const counts = Object.entries(quantities)
    .map(([name, { key }]) => ({ name, pairs: slowPairs(slow.filter((at) => at.quantity === key)).length }))
    .filter(({ pairs }) => pairs > 0);
  return counts.map(({ name, pairs }) => `${pairs} by ${name}`).join(", ");
}

function content({ run, point }) {
  const slow = inLaunch(point.slow_pairs ?? []);
  const pairs = slowPairs(slow);
  const end = commonEnd(pairs);
  const most = end ? 3 : 8;
  const others = point.rows.filter((row) => row.op === "p2p" && row.src === undefined && known(row.bandwidth));
  return [
    pairs.length > 0
      ? el("ul", { class: "saying" }, end ? el("li", {}, el("b", {}, end)) : null, pairs.slice(0, most).map((at) => el("li", {}, slowText(at))),
          pairs.length > most ? el("li", {}, `${pairs.length - most} more`) : null,
          el("li", {}, `${pairs.length === 1 ? "one pair" : `${pairs.length} pairs`} in all: ${slowCounts(slow)}; the picture outlines those of what it shows`))
      : el("p", { class: "saying" }, "No pair is known to be slow against the others of its class."),
    others.length > 0
      ? el("p", { class: "saying" }, others.map((row) => `${row.kind}: ${si(row.bandwidth, "B/s")}${row.class ? ` (${row.class})` : ""}`).join("; "))
      : null,
    el("div", { class: "charts" }, matrixChart(run, point)),
  ];
}

/** @param {{run: object, point: object}[]} micro */
export function pairsSection(micro) {
  const all = micro.filter(({ point }) => point.rows.some(isPair)).sort((a, b) => b.point.ranks - a.point.ranks);
  if (all.length === 0) return null;
  const names = all.map(({ point }) => `${point.ranks} ranks, point ${point.index}`);
  return { id: "pairs", title: "Pairs",
    heading: "Pairs of ranks", content: oneOf("point", names, (index) => content(all[index])) };
}
