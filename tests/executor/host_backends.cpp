// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/host.hpp"
#include "tests/executor/emulating_executor.hpp"
#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

std::unique_ptr<Executor> make_host() { return make_host_executor({}); }

}  // namespace

std::vector<Backend> backends() {
  return {
      {.name = "host", .make = make_host, .floats = {program::DType::f64, program::DType::f32}}};
}
std::vector<Backend> narrow_backends() {
  return {{.name = "emulating",
           .make = make_emulating_executor,
           .floats = {program::DType::f16, program::DType::bf16}}};
}

}  // namespace isoscale::executor
