// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every executor must pass the tests of tests/executor and of points in tests/mpi; here they run on
// GPUs that are stand-ins.
#include <fmt/format.h>

#include "tests/cuda/devices.hpp"
#include "tests/executor/executors.hpp"
#include "tests/mpi/points.hpp"

namespace isoscale::executor {
namespace {

template <std::uint64_t seed, settings::Graph graph>
std::unique_ptr<Executor> make() {
  const standin::Gpus gpus{seed};
  standin::choose_at_once();
  return gpus.executor(graph);
}

}  // namespace

std::vector<Backend> backends() {
  using settings::Graph;
  return {{.name = "cuda", .make = make<1, Graph::off>, .mixes_wide_types = false},
          {.name = "cuda_graph", .make = make<2, Graph::on>, .mixes_wide_types = false}};
}
std::vector<Backend> narrow_backends() { return backends(); }

/// Both kinds of play, and orders of work.
std::vector<Way> ways() {
  std::vector<Way> all;
  for (const auto graph : {settings::Graph::off, settings::Graph::on}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const char* const kind = graph == settings::Graph::on ? "graph" : "plain";
      all.push_back({.name = fmt::format("{}_seed{}", kind, seed),
                     .make =
                         [graph, seed](const comm::Communicator& point) {
                           standin::machine().reset(standin::healthy(point, seed));
                           return std::make_unique<standin::OnPoints>(
                               make_cuda_executor(standin::Gpus::options(graph), point));
                         },
                     .stream = 1,
                     .has_messages_in_place = false});
    }
  }
  return all;
}

}  // namespace isoscale::executor
