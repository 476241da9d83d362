// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Prepares the data of a prediction (predict --format json) for its sections.
import { largest } from "./causes.js";
import { distinct } from "./data.js";
import { known } from "./format.js";

/**
 * @typedef {object} PredictedCurve
 * @property {string} name unique among the curves
 * @property {object[]} points those that could be predicted, as the JSON has them
 * @property {object[]} refused {ranks, nodes, refused} of the points without a prediction
 */

/** Returns the curve of the machine as it is, then of each what-if. @returns {PredictedCurve[]} */
export function predictedCurves(prediction) {
  const all = [prediction.curve, ...prediction.what_if];
  const names = distinct(all.map((curve) => curve.title));
  return all.map((curve, i) => ({
    name: names[i],
    points: curve.points.filter((point) => point.refused === null),
    refused: curve.points.filter((point) => point.refused !== null),
  }));
}

/** Returns the curves that have points for which `passes` is true, with only these points. */
export const curvesWith = (prediction, passes) => predictedCurves(prediction)
  .map((curve) => ({ ...curve, points: curve.points.filter(passes) })).filter((curve) => curve.points.length > 0);

export const lastOf = (curve) => largest(curve.points);

/** Returns the two bounds of an interval; null if it has none. */
export const endsOf = ({ lower, upper }) => (known(lower) && known(upper) && lower < upper ? [lower, upper] : null);

/** Returns a predicted point in the form of a measured point, as the waterfall chart needs it. */
export function fallen(point) {
  const { ideal, predicted, lost } = point.waterfall;
  return { ranks: point.ranks, labels: [], full: { waterfall: { ideal, measured: predicted, lost, missing: [] } } };
}

/** Combines the independent parts of an uncertainty into one relative standard deviation. */
export const together = ({ noise, launch, fit }) => Math.hypot(noise, launch, fit);
