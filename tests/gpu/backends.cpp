// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every executor must pass these tests; here they run on a real GPU.
#include "tests/executor/executors.hpp"
#include "tests/gpu/gpus.hpp"

namespace isoscale::executor {
namespace {

std::unique_ptr<Executor> make_plain() {
  return gpu_tests::make_executor(comm::Communicator::world());
}
std::unique_ptr<Executor> make_replaying() {
  return gpu_tests::make_executor(comm::Communicator::world(), settings::Graph::on);
}

}  // namespace

std::vector<Backend> backends() {
  return {{.name = "cuda", .make = make_plain, .mixes_wide_types = false},
          {.name = "cuda_graph", .make = make_replaying, .mixes_wide_types = false}};
}
std::vector<Backend> narrow_backends() { return backends(); }

}  // namespace isoscale::executor
