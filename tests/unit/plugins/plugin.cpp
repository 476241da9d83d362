// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Plugins for plugin_test: FINGERPRINT is what this one claims to be built with.
#include "executor/plugin.hpp"

#include "executor/fingerprint.hpp"

namespace isoscale::executor {
namespace {

std::string problem() { return "a stand-in"; }

std::unique_ptr<Executor> make(const CudaOptions& /*options*/,
                               const comm::Communicator& /*world*/) {
  return nullptr;
}

}  // namespace
}  // namespace isoscale::executor

extern "C" const isoscale::executor::PluginTable* isoscale_plugin() {
  static constexpr isoscale::executor::PluginTable table{.fingerprint = FINGERPRINT,
                                                         .problem = isoscale::executor::problem,
                                                         .make = isoscale::executor::make};
  return &table;
}
