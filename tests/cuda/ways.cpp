// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

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
                           const standin::Gpus gpus{seed};
                           standin::machine().settings.nccl_world = point.get();
                           return gpus.executor(graph);
                         },
                     .stream = 1,
                     .has_messages_in_place = false});
    }
  }
  return all;
}

bool tries_part_of_the_world() { return false; }

}  // namespace isoscale::executor
