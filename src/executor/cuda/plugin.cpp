// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/plugin.hpp"

#include "executor/cuda/device.hpp"
#include "executor/fingerprint.hpp"

/// The entry point that the main program looks for after it has opened libisoscale_cuda.so.
extern "C" const isoscale::executor::PluginTable* isoscale_plugin() {
  static constexpr isoscale::executor::PluginTable table{
      .fingerprint = isoscale::executor::interface_fingerprint,
      .problem = isoscale::executor::cuda::device_problem,
      .make = isoscale::executor::make_cuda_executor};
  return &table;
}
