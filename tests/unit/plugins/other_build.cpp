// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// A plugin of another build, for tests/cli/device_test.py. Nothing of it is called.
#include "executor/plugin.hpp"

extern "C" const isoscale::executor::PluginTable* isoscale_plugin() {
  static constexpr isoscale::executor::PluginTable table{
      .fingerprint = "0.0.0, interface of another build", .problem = nullptr, .make = nullptr};
  return &table;
}
