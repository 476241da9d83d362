// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// A library that is no plugin.
extern "C" int isoscale_nothing() { return 0; }
