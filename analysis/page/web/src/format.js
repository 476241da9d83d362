// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Formats numbers and lists for people, as the text report does.

export const missing = "\u2014";

const prefixes = [
  [1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""],
  [1e-3, "m"], [1e-6, "\u00b5"], [1e-9, "n"],
];
const binary = [[2 ** 50, "PiB"], [2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
/** True for a finite number; unknown values are null. */
export const known = (value) => typeof value === "number" && Number.isFinite(value);

/** Formats a value from 1 to 1000 with three significant digits. Smaller values have two decimal
 * places, larger ones and 0 none. */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 100 || value === 0) return value.toFixed(0);
  return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** Returns the first entry [factor, unit] whose factor the value reaches when rounded, if any. */
const factorOf = (value, factors) => factors.find(([least]) => Math.abs(value) >= least * 0.9995);

/** Formats a value with an SI prefix: 12.3e6, "B/s" -> "12.3 MB/s". A unit that begins with a word,
 * such as tokens/s, stands apart from the prefix: "12.3 k tokens/s". */
export function si(value, unit = "") {
  if (!known(value)) return missing;
  const [factor, prefix] = value === 0 ? [1, ""] : factorOf(value, prefixes) ?? prefixes.at(-1);
  const between = prefix && /^[a-z]{4}| /.test(unit) ? " " : "";
  return `${digits(value / factor)} ${prefix}${between}${unit}`.trim();
}

export const seconds = (value) => si(value, "s");
export const bandwidth = (value) => si(value, "B/s");
export const flops = (value) => si(value, "FLOP/s");
/** Formats a ratio: 0.253 -> "25.3%". */
export const percent = (value, places = 1) => (known(value) ? `${fixed(100 * value, places)}%` : missing);

/** Formats a number of bytes: a whole number of GiB, MiB or KiB in the largest of these units, a
 * whole number below 1024 in B, and all others with a decimal prefix: "1.50 kB". */
export function bytes(value) {
  if (!known(value)) return missing;
  if (Number.isInteger(value) && Math.abs(value) < 1024) return `${value} B`;
  const whole = binary.slice(2).find(([factor]) => value >= factor && Number.isInteger(value / factor));
  return whole ? `${value / whole[0]} ${whole[1]}` : si(value, "B");
}

/** Formats a size of memory in B, KiB, MiB, ... with three significant digits: "1.96 TiB". */
export function memory(value) {
  if (!known(value)) return missing;
  const [factor, unit] = factorOf(value, binary) ?? [1, "B"];
  return `${digits(value / factor)} ${unit}`;
}

export const fixed = (value, places = 2) => (known(value) ? value.toFixed(places).replace(/^-(?=[0.]*$)/, "") : missing);

/** The forms of values in tables. `text` formats a value, `unit` is the unit of a number in copied
 * CSV, `number: false` means words, and `look` is the CSS class of a cell. All other forms are
 * numbers with an SI prefix and the metric's unit. */
const forms = {
  text: { number: false },
  nowrap: { number: false, look: "nowrap" },
  long: { number: false, look: "long" },
  count: {},
  digits: { text: (value) => String(Number(value.toPrecision(4))) },
  share: { text: (value) => percent(value) },
  ratio: { text: (value) => fixed(value) },
  factor: { text: (value) => `${fixed(value)} times` },
  prefixed: { text: (value) => si(value) },
  seconds: { text: seconds, unit: "s" },
  bytes: { text: memory, unit: "B" },
};
/** Returns the entry of `forms` for a metric's values. */
export const formOf = ({ form = "text", unit }) => forms[form] ?? { text: (value) => si(value, unit), unit };

/** Returns [lower, upper] of an object with an interval; null if it has none. */
export const endsOf = ({ lower, upper }) => (known(lower) && known(upper) ? [lower, upper] : null);

/** Formats a count: 1, "rank" -> "1 rank"; 4, "rank" -> "4 ranks". */
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
/** Formats a rank count: "64 ranks", "1 rank". */
export const rankCount = (ranks) => counted(ranks, "rank");
/** Formats several rank counts: "2, 4 ranks". */
export const ranksText = (ranks) => (ranks.length === 1 ? rankCount(ranks[0]) : `${ranks.join(", ")} ranks`);
/** Returns the axes of a mesh that are longer than 1: "dp=4,tp=2"; `alone` if there are none. */
export const meshText = (mesh, alone = "1") =>
  Object.entries(mesh ?? {}).filter(([, extent]) => extent > 1).map(([axis, extent]) => `${axis}=${extent}`).join(",") || alone;
/** Formats a ratio as a percentage that has its sign even if it is positive: "+1.2%". */
export const signedPercent = (value, places = 1) => (known(value) && value > 0 ? "+" : "") + percent(value, places);
/** Returns "ok", or the status and its reason. */
export const statusText = ({ status, reason }) => (status === "ok" ? "ok" : `${status}: ${reason ?? ""}`);
/** Joins the parts that are not empty. */
export const joined = (parts, by = ", ") => parts.filter(Boolean).join(by);
/** Joins the lines of a tooltip that are not empty. */
export const lined = (...lines) => joined(lines, "\n");
/** Joins facts to one line with dots between them; leaves out those that are empty. */
export const dotted = (...facts) => joined(facts, " \u00b7 ");
/** Lists the first `most` values and the number of the others: "a, b and 3 more". */
export const listed = (values, most = 6) =>
  values.slice(0, most).join(", ") + (values.length > most ? ` and ${values.length - most} more` : "");
