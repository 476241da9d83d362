// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Defines the causes of lost time for all sections: the part of the step to which each belongs, its
// meaning and its colour.
import { isUnsound, ownOf } from "./data.js";
import { largestBy } from "./lists.js";

/** For each cause, the part of the step that gives it its colour everywhere, and its meaning, as in
 * docs/breakdown.md. */
const causes = {
  "GEMM overlap": ["compute", "GEMMs are slower beside communication"],
  GEMMs: ["compute", "GEMMs take longer than the baseline's share: smaller shapes, lower clocks, shared memory"],
  "other compute": ["compute", "element-wise ops, casts, the optimizer"],
  copies: ["copies", "copies between memories"],
  communication: ["transfer", "transfer and wait that no computation hides"],
  bubble: ["bubble", "idle time that the pipeline's schedule asks for"],
  imbalance: ["wait", "waiting for ranks that are consistently late"],
  noise: ["wait", "waiting for ranks that are occasionally late"],
  waiting: ["wait", "waiting for other ranks"],
  gap: ["gap", "nothing was issued"],
  other: ["other", "what no part of the step explains"],
  "uneven steps": ["other", "a step is as long as its slowest rank's"],
  untraced: ["other", "untraced steps differ from the traced ones by this"],
  "beyond the model": ["other", "what the model misses of the measured baseline"],
};
const causeOf = (cause) => ownOf(causes, cause)
  ?? (cause.endsWith(" transfer") ? ["transfer", "transfers that no computation hides"] : ["other", ""]);
export const partOfCause = (cause) => causeOf(cause)[0];
/** Returns the meaning of a cause in a few words; "" if the cause is unknown. */
export const meaning = (cause) => causeOf(cause)[1];

/** Returns the losses of a point, largest first, as {cause, seconds, share}, where `share` is
 * relative to the measured step. Returns [] if the report has no lost time by cause (waterfall) for
 * the point, as for the baseline. */
export function lossesOf(point) {
  const waterfall = point.full.waterfall;
  if (!waterfall || !(waterfall.measured > 0)) return [];
  return Object.entries(waterfall.lost)
    .map(([cause, seconds]) => ({ cause, seconds, share: seconds / waterfall.measured }))
    .sort((a, b) => b.seconds - a.seconds);
}

/** The key among a waterfall's losses that is not a cause, but the difference between traced and
 * untraced steps. */
export const tracing = "untraced";
/** False if the report says that the causes do not add up to the loss; the causes are then not
 * shown. */
export const explains = (point) => point.full.waterfall?.explains !== false;
/** Returns the measured point with the largest rank count; undefined if none was measured. */
export const largest = (points) => largestBy(points, ({ ranks }) => ranks);
/** True if the times of a point represent the machine: it has no label that says otherwise, and its
 * results were right or not checked. Other comments call such a point sound. */
export const isSound = (point) => !isUnsound(point) && point.full.verified !== false;
/** Returns the point by which a curve is judged: the largest sound one (isSound()), or the largest
 * if none is sound; undefined without points. */
export const headlineOf = (points) => largest(points.filter(isSound)) ?? largest(points);
