// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "comm/communicator.hpp"
#include "executor/host/host_executor.hpp"
#include "tests/executor/sketch.hpp"
#include "tests/unit/matchers.hpp"

/// Points of all ranks, and what executors of every kind must play on them.
namespace isoscale::executor {

/// An executor, and how it is asked to play.
struct Way {
  std::string name;
  std::function<std::unique_ptr<Executor>(const comm::Communicator& point)> make;
  program::StreamId stream = 0;       ///< that collectives are on: 0 or 1
  std::uint64_t part = 1'003;         ///< elements of a member's part of a collective
  bool folds = false;                 ///< streams
  bool has_messages_in_place = true;  ///< gathers, scatters and all_to_alls may be in place
};
/// Returns the ways that a test program tries; each program defines this function.
[[nodiscard]] std::vector<Way> ways();

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

/// Ranks that play together, all of this run unless others are given, and their executor.
struct Point {
  explicit Point(const HostOptions& options = {}) : executor(make_host_executor(options)) {}
  explicit Point(const Way& way, comm::Communicator on = comm::Communicator::world())
      : world(std::move(on)), executor(way.make(world)) {}

  [[nodiscard]] SessionPtr prepare(const Sketch& sketch) const {
    return executor->prepare(sketch.on(shape), world);
  }

  comm::Communicator world = comm::Communicator::world();
  mesh::Shape shape = mesh_of(world.size());
  std::unique_ptr<Executor> executor;
};

/// Layers of D = A * B, reduced on stream 1, sent around on stream 2 and used by stream 0 again.
struct Layers {
  static constexpr std::size_t count = 4;
  static constexpr std::uint64_t edge = 160;  ///< of f64 matrices: above any eager limit

  Layers() {
    const auto square = [](const program::Slice& slice) { return Sketch::dense(slice, edge); };
    a = sketch.buffer<double>(edge * edge);
    sum = sketch.buffer<double>(edge * edge);
    std::array<program::Slice, count> product, received;
    std::array<std::uint32_t, count> reduced{}, sent{};
    for (std::size_t i = 0; i < count; ++i) {
      for (program::Slice* one : {&weight[i], &product[i], &received[i]}) {
        *one = sketch.buffer<double>(edge * edge);
      }
      program::Gemm gemm{.m = edge, .n = edge, .k = edge};
      gemm.a = square(a);
      gemm.b = square(weight[i]);
      gemm.d = square(product[i]);
      const std::uint32_t multiplied = sketch.emit(gemm);
      reduced[i] = sketch.all_reduce(product[i], mesh::every_axis, 1, {{0, multiplied}});
    }
    using program::Direction;
    for (std::size_t i = 0; i < count; ++i) {
      sent[i] =
          sketch.emit(program::Exchange{{{Direction::receive, mesh::Axis::tp, -1, received[i]},
                                         {Direction::send, mesh::Axis::tp, 1, product[i]}}},
                      2, {{1, reduced[i]}});
    }
    for (std::size_t i = 0; i < count; ++i) {
      program::Add add{.rows = edge, .columns = edge, .a = square(received[i])};
      add.b = square(i == 0 ? a : sum);
      add.dst = square(sum);
      sketch.emit(add, 0, {{2, sent[i]}});
    }
  }

  /// A session with values that differ between ranks.
  [[nodiscard]] SessionPtr on(const Point& point) const {
    auto session = point.prepare(sketch);
    const auto rank = static_cast<std::uint64_t>(point.world.rank());
    put(*session, a, whole_values<double>(edge * edge, rank));
    for (std::size_t i = 0; i < count; ++i) {
      put(*session, weight[i], whole_values<double>(edge * edge, 50 + i));
    }
    return session;
  }

  Sketch sketch;
  program::Slice a, sum;
  std::array<program::Slice, count> weight;
};

}  // namespace isoscale::executor
