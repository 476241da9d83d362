// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The curve and the rank count that all sections show, kept in the address after the section's
// name: page.html#timeline?curve=dp&ranks=4.

const partsOf = () => location.hash.slice(1).split("?");
let chosen = new URLSearchParams(partsOf()[1] ?? "");
const listeners = [];
const tellAll = () => listeners.forEach((listener) => listener());

/** Returns the name of the section in the address; "" without one. */
export const sectionInAddress = () => partsOf()[0];

function writeAddress() {
  const filter = String(chosen);
  if (filter !== (partsOf()[1] ?? "")) history.replaceState(null, "", `#${partsOf()[0]}?${filter}`);
}

export const filter = {
  /** Returns the chosen curve's name or rank count as text; null before a reader chose one. */
  get: (key) => chosen.get(key),
  set(changes) {
    for (const [key, value] of Object.entries(changes)) chosen.set(key, value);
    writeAddress();
    tellAll();
  },
  onChange: (listener) => listeners.push(listener),
};

window.addEventListener("hashchange", () => {
  // A link to a section has no filter: the reader's choice stays, and goes back into the address.
  const [, query] = partsOf();
  if (query === undefined) {
    if (String(chosen) !== "") writeAddress();
  } else if (query !== String(chosen)) {
    chosen = new URLSearchParams(query);
    tellAll();
  }
});
