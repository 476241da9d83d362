// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Views of a prediction (predict --format json) that its sections share.
import { largest } from "./causes.js";
import { distinct } from "./data.js";
import { known } from "./format.js";

/**
 * @typedef {object} PredictedCurve
 * @property {string} name told apart from those of the others
 * @property {object[]} points those that could be predicted, as the JSON has them
 * @property {object[]} refused {ranks, nodes, refused} of the others
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

/** Returns the curves that have points which pass, with only these points. */
export const curvesWith = (prediction, passes) => predictedCurves(prediction)
  .map((curve) => ({ ...curve, points: curve.points.filter(passes) })).filter((curve) => curve.points.length > 0);

export const lastOf = (curve) => largest(curve.points);

/** Returns the two bounds of an interval; null if it has none. */
export const endsOf = ({ lower, upper }) => (known(lower) && known(upper) && lower < upper ? [lower, upper] : null);

/** Returns a predicted point in the form of a measured one, for the waterfall of reports. */
export function fallen(point) {
  const { ideal, predicted, lost } = point.waterfall;
  return { ranks: point.ranks, labels: [], full: { waterfall: { ideal, measured: predicted, lost, missing: [] } } };
}

/** Returns the relative standard deviation of all parts of an uncertainty together. */
export const together = ({ noise, launch, fit }) => Math.hypot(noise, launch, fit);
