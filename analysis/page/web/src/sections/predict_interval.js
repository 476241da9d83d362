// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Where the intervals of a prediction come from, and which measurement would narrow them.
import { chart } from "../chart.js";
import { copyText, el } from "../dom.js";
import { percent } from "../format.js";
import { predictedCurves, together } from "../predicted.js";

const share = (value) => percent(value, value < 0.0995 ? 1 : 0);

const sources = [
  { name: "noise", key: "noise", part: "wait", meaning: "of the step time, from step to step" },
  { name: "launch", key: "launch", part: "copies", meaning: "of the median step, from launch to launch" },
  { name: "model", key: "fit", part: "compute", meaning: "what it misses of known points, and of its extrapolation" },
];
const all = "together";

function uncertaintyChart(curves) {
  const [{ points }] = curves;
  const counts = points.map((point) => String(point.ranks));
  const used = sources.filter(({ key }) => points.some((point) => point.uncertainty[key] > 0));
  return chart({
    id: "predict-uncertainty",
    title: "What the interval is made of",
    note: `relative standard deviations, which add up in squares; the interval is the value times and over exp(1.645 \u00d7 all together); ${
      used.map(({ name, meaning }) => `${name}: ${meaning}`).join("; ")}`,
    table: {
      columns: [{ title: "curve" }, { title: "ranks", number: true },
        ...[...sources.map(({ name }) => name), all].map((title) => ({ title, number: true, text: (value) => percent(value, 2) }))],
      rows: curves.flatMap((curve) => curve.points.map((point) =>
        [curve.name, point.ranks, ...sources.map(({ key }) => point.uncertainty[key]), together(point.uncertainty)])),
    },
    height: 280,
    option: (colours) => ({
      xAxis: { type: "category", data: counts, name: "ranks", nameLocation: "middle", nameGap: 26, axisTick: { show: false } },
      yAxis: { type: "value", min: 0, axisLabel: { formatter: share } },
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "shadow" },
        formatter: (items) => [`${counts[items[0].dataIndex]} ranks`, ...items.map(({ seriesName, value }) => `${seriesName}: \u00b1${percent(value, 2)}`)].join("\n"),
      },
      series: [
        ...used.map(({ name, key, part }) => ({
          type: "bar", name, barMaxWidth: 28, itemStyle: { color: colours.parts[part] }, data: points.map((point) => point.uncertainty[key]),
        })),
        {
          type: "line", name: all, data: points.map((point) => together(point.uncertainty)), symbol: "diamond", symbolSize: 10,
          itemStyle: { color: colours.text }, lineStyle: { color: colours.text, width: 1.5, type: "dashed" },
        },
      ],
    }),
  });
}

/** The measurement that helps most: what, how, and how wide the interval is then. */
export function nextContent(next) {
  const copy = el("button", {
    type: "button",
    class: "quiet",
    on: {
      click: async () => {
        await copyText(next.command);
        copy.textContent = "copied";
        setTimeout(() => { copy.textContent = "copy"; }, 1500);
      },
    },
  }, "copy");
  const bar = (name, width) => el("div", { class: "cause" }, el("b", {}, percent(width)),
    el("div", {}, el("span", { class: "faint" }, name),
      el("div", { class: "bar thin", "aria-hidden": "true" }, el("i", { class: "reached", style: `width:${Math.min(100, (100 * width) / Math.max(next.width_now, next.width_then))}%` }))));
  return el("div", {},
    el("p", {}, el("b", {}, next.what)),
    next.command ? el("p", {}, el("code", {}, next.command), " ", copy) : null,
    bar("width of the interval at the largest rank count, now", next.width_now),
    bar("with that measured", next.width_then));
}

export function intervalSection(prediction) {
  const curves = predictedCurves(prediction).filter((curve) => curve.points.length > 0);
  if (curves.length === 0) return null;
  return {
    id: "interval",
    title: "Interval",
    heading: "Where the interval comes from",
    content: el("div", { class: "charts" },
      uncertaintyChart(curves),
      prediction.next ? el("div", { class: "panel", id: "next" }, el("h3", {}, "Measure this next"), nextContent(prediction.next)) : null),
  };
}
