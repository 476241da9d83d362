// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <memory>

#include "tests/cuda/devices.hpp"
#include "tests/mpi/points.hpp"

namespace isoscale::executor {

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
