// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
const data = JSON.parse(document.getElementById("data").textContent);
document.getElementById("page").textContent = `Isoscale ${data.isoscale_version}`;
