// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Holds the curve and the rank count that all sections show. The address has them after the section's name:
// page.html#timeline?curve=dp&ranks=4.

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
  /** Returns the chosen curve's name or rank count as text; null if the reader chose none. */
  get: (key) => chosen.get(key),
  set(changes) {
    for (const [key, value] of Object.entries(changes)) chosen.set(key, value);
    writeAddress();
    tellAll();
  },
  onChange: (listener) => listeners.push(listener),
};

window.addEventListener("hashchange", () => {
  // A link to a section has no filter: the reader's choice is kept and added to the address again.
  const [, query] = partsOf();
  if (query === undefined) {
    if (String(chosen) !== "") writeAddress();
  } else if (query !== String(chosen)) {
    chosen = new URLSearchParams(query);
    tellAll();
  }
});
