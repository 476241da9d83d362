// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "comm/communicator.hpp"
#include "executor/host/host.hpp"
#include "mesh/mesh.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale::executor {

/// A mesh of as many axes as the ranks of this run allow.
inline mesh::Shape mesh_of(int ranks) {
  switch (ranks) {
    case 2:
      return {.tp = 2};
    case 4:
      return {.tp = 2, .dp = 2};
    case 8:
      return {.tp = 2, .dp = 2, .pp = 2};
    default:
      return {.dp = ranks};
  }
}

/// All ranks of this run as one point, and a host executor that plays on it.
struct Point {
  explicit Point(const HostOptions& options = {}) : executor(make_host_executor(options)) {}

  [[nodiscard]] std::unique_ptr<Session> prepare(const Sketch& sketch) const {
    return executor->prepare(sketch.on(shape), world);
  }

  comm::Communicator world = comm::Communicator::world();
  mesh::Shape shape = mesh_of(world.size());
  std::unique_ptr<Executor> executor;
};

}  // namespace isoscale::executor
