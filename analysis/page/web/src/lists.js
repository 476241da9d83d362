// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Selects, groups and compares the items of lists.
import { known } from "./format.js";

/** Compares names so that node2 is before node10. */
export const naturally = (a, b) => a.localeCompare(b, "en", { numeric: true });
/** Returns the distinct values in their order, without null, undefined and "". */
export const distinctOf = (values) => [...new Set(values.filter((value) => value !== null && value !== undefined && value !== ""))];

/** Returns the median of the known values; null if no value is known. */
export function median(values) {
  const sorted = values.filter(known).sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return null;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Groups the items by their keys; returns a Map from key to items, in the order in which keys
 * first occur. */
export function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

/** Returns the first of the items with the largest `value`; undefined if no value is known. */
export const largestBy = (items, value) =>
  items.filter((item) => known(value(item))).reduce((best, item) => (best && value(best) >= value(item) ? best : item), undefined);
