// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Defines the causes of lost time for all sections: their shares of the step, meanings and colours.
import { unsound } from "./data.js";
import { largestBy } from "./format.js";

/** The meaning of each cause, as in docs/breakdown.md. */
const meanings = {
  "GEMM overlap": "GEMMs are slower beside communication",
  GEMMs: "GEMMs take longer than the baseline's share: smaller shapes, lower clocks, shared memory",
  "other compute": "element-wise ops, casts, the optimizer",
  copies: "copies between memories",
  communication: "transfer and wait that no computation hides",
  bubble: "idle time that the pipeline's schedule asks for",
  imbalance: "waiting for ranks that are consistently late",
  noise: "waiting for ranks that are occasionally late",
  waiting: "waiting for other ranks",
  gap: "nothing was issued",
  other: "what no part of the step explains",
  "uneven steps": "a step is as long as its slowest rank's",
  untraced: "untraced steps differ from the traced ones by this",
  "beyond the model": "what the model misses of the measured baseline",
};

const isTransfer = (cause) => cause.endsWith(" transfer");
/** Explains a cause in a few words; "" if it is unknown. */
export const meaning = (cause) => meanings[cause] ?? (isTransfer(cause) ? "transfers that no computation hides" : "");

const partOf = {
  "GEMM overlap": "compute", GEMMs: "compute", "other compute": "compute", copies: "copies",
  communication: "transfer", bubble: "bubble", imbalance: "wait", noise: "wait", waiting: "wait", gap: "gap",
};

/** Returns the part of a step that a cause belongs to, so that it has the same colour everywhere. */
export const partOfCause = (cause) => partOf[cause] ?? (isTransfer(cause) ? "transfer" : "other");

/** Returns the losses of a point, largest first; [] if it has no waterfall, as for the baseline. They are {cause, seconds,
 * share: of the measured step}. */
export function lossesOf(point) {
  const waterfall = point.full.waterfall;
  if (!waterfall || !(waterfall.measured > 0)) return [];
  return Object.entries(waterfall.lost)
    .map(([cause, seconds]) => ({ cause, seconds, share: seconds / waterfall.measured }))
    .sort((a, b) => b.seconds - a.seconds);
}

/** The name of an entry among a waterfall's losses that is not a cause: the difference between traced and untraced steps. */
export const tracing = "untraced";
/** False if the report says that the causes do not explain the loss; they are then not shown. */
export const explains = (point) => point.full.waterfall?.explains !== false;
/** Returns the measured point with the largest rank count; undefined if none was measured. */
export const largest = (points) => largestBy(points, ({ ranks }) => ranks);

/** True if the times of a point represent the machine: no label says otherwise, and the results are verified or were not
 * checked. Other comments call such a point sound. */
export const isSound = (point) => !point.labels.some((label) => unsound.includes(label)) && point.full.verified !== false;

/** Returns the point that a curve is judged by: the largest sound one, or the largest if none is sound; undefined without
 * points. */
export const headlineOf = (points) => largest(points.filter(isSound)) ?? largest(points);
