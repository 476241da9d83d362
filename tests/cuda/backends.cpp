// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every executor must pass these tests; here they run on GPUs that are stand-ins.
#include "tests/cuda/devices.hpp"
#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

std::unique_ptr<Executor> make_plain() { return standin::Gpus{}.executor(); }
std::unique_ptr<Executor> make_replaying() {
  return standin::Gpus{2}.executor(settings::Graph::on);
}

}  // namespace

std::vector<Backend> backends() {
  return {{.name = "cuda", .make = make_plain, .mixes_wide_types = false},
          {.name = "cuda_graph", .make = make_replaying, .mixes_wide_types = false}};
}
std::vector<Backend> narrow_backends() { return backends(); }

}  // namespace isoscale::executor
