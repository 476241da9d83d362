// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/sniff.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "program/builder.hpp"
#include "workloads/bench/bench.hpp"
#include "workloads/gemm/gemm.hpp"

namespace isoscale::runner {
namespace {

constexpr units::Seconds stretch{0.2};  ///< of one play, about
constexpr int plays = 3;                ///< of which the fastest counts: what disturbs only slows
constexpr std::uint32_t most_passes = 1024;
constexpr units::Seconds answer_time{10};  ///< a message that takes longer does not come

/// Large enough to show what a device can do, small enough for a fraction of a second.
struct Sizes {
  std::uint32_t gemm = 0;     ///< m = n = k
  program::DType dtype{};     ///< of the multiplication
  std::uint64_t message = 0;  ///< bytes
};
Sizes sizes_of(const executor::Description& device) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  if (device.name == "host") {
    return {.gemm = 768, .dtype = program::DType::f32, .message = 8 * mib};
  }
  return {.gemm = 8192, .dtype = program::DType::bf16, .message = 256 * mib};
}

program::ProgramSet gemm_program(const Sizes& sizes) {
  const mesh::Shape alone;
  workloads::gemm::Shape shape;
  shape.m = shape.n = shape.k = sizes.gemm;
  shape.a = shape.b = shape.d = sizes.dtype;
  program::Builder builder{alone};
  workloads::gemm::Operands operands{builder};
  operands.reserve(shape, 1);
  operands.fill();
  builder.begin(program::Section::step);
  builder.emit(builder.stream("compute"), operands.multiplication(shape, 0));
  return workloads::alike(alone, builder.finish());
}

/// Two ranks that send to each other at once.
program::ProgramSet exchange_program(const Sizes& sizes) {
  const mesh::Shape pair{.pp = 2};
  program::Builder builder{pair};
  const program::StreamId stream = builder.stream("compute");
  const auto buffer = [&](program::Role role) {
    return builder.allocate({.dtype = program::DType::u8, .role = role, .count = sizes.message});
  };
  const program::BufferId out = buffer(program::Role::input);
  const program::BufferId in = buffer(program::Role::workspace);
  builder.emit(stream, program::Fill{.dst = builder.whole(out),
                                     .shard = {.extents = {sizes.message, 1, 1},
                                               .local = {1, 0, 0},
                                               .global = {1, 0, 0}},
                                     .key = 1});
  builder.begin(program::Section::step);
  builder.emit(stream, program::Exchange{{{.direction = program::Direction::send,
                                           .axis = mesh::Axis::pp,
                                           .offset = 1,
                                           .slice = builder.whole(out)},
                                          {.direction = program::Direction::receive,
                                           .axis = mesh::Axis::pp,
                                           .offset = -1,
                                           .slice = builder.whole(in)}}});
  return workloads::alike(pair, builder.finish());
}

double seconds_of(executor::PlayTime time) {
  return units::to_seconds(time.end - time.begin).value();
}

/// What one rank plays in a phase; it may die of a partner that does not answer.
class Player {
 public:
  /// `session` may be null: this rank sits out.
  explicit Player(std::unique_ptr<executor::Session> session) : session_(std::move(session)) {}

  /// Seconds; nullopt for one that sits out, or has no answer any more.
  std::optional<double> play(program::Section section, std::uint32_t times) {
    if (!session_) return std::nullopt;
    try {
      return seconds_of(
          session_->play({.section = section, .times = times, .timeout = answer_time}));
    } catch (const executor::TimedOut&) {
      session_->abandon();
      session_.reset();
      return std::nullopt;
    }
  }

 private:
  std::unique_ptr<executor::Session> session_;
};

/// Seconds of one pass of the step on this rank, the least of some plays. Collective over `world`,
/// and over nothing less: a rank whose partner is silent must not leave others waiting.
std::optional<double> time_of_pass(Player player, const comm::Communicator& world) {
  using program::Section;
  static_cast<void>(player.play(Section::setup, 1));
  static_cast<void>(player.play(Section::step, 1));  // connects, and makes pages present
  const double slowest = world.all_max(player.play(Section::step, 1).value_or(0));
  const auto passes = static_cast<std::uint32_t>(
      std::clamp(stretch.value() / std::max(slowest, 1e-9), 1.0, double{most_passes}));
  std::optional<double> least = player.play(Section::step, passes);
  for (int i = 1; i < plays && least; ++i) {
    const std::optional<double> next = player.play(Section::step, passes);
    least = next ? std::optional{std::min(*least, *next)} : std::nullopt;
  }
  if (!least) return std::nullopt;
  return *least / passes;
}

}  // namespace

std::vector<Partners> sniff_phases(std::span<const int> node_of_rank) {
  std::vector<std::vector<int>> nodes;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const auto node = static_cast<std::size_t>(node_of_rank[rank]);
    if (node >= nodes.size()) nodes.resize(node + 1);
    nodes[node].push_back(static_cast<int>(rank));
  }
  std::vector<Partners> phases;
  const auto add_phase = [&](const auto& fill) {
    Partners partners(node_of_rank.size(), -1);
    fill(partners);
    const bool any = std::ranges::any_of(partners, [](int partner) { return partner >= 0; });
    if (any) phases.push_back(std::move(partners));
  };
  const auto join = [](Partners& partners, int a, int b) {
    partners[static_cast<std::size_t>(a)] = b;
    partners[static_cast<std::size_t>(b)] = a;
  };
  const auto join_nodes = [&](Partners& partners, std::size_t a, std::size_t b) {
    const std::size_t places = std::min(nodes[a].size(), nodes[b].size());
    for (std::size_t place = 0; place < places; ++place) {
      join(partners, nodes[a][place], nodes[b][place]);
    }
  };
  add_phase([&](Partners& partners) {
    for (const auto& ranks : nodes) {
      for (std::size_t i = 0; i + 1 < ranks.size(); i += 2) join(partners, ranks[i], ranks[i + 1]);
    }
  });
  add_phase([&](Partners& partners) {
    for (std::size_t node = 0; node + 1 < nodes.size(); node += 2) {
      join_nodes(partners, node, node + 1);
    }
  });
  if (nodes.size() % 2 == 1 && nodes.size() > 1) {
    add_phase([&](Partners& partners) { join_nodes(partners, nodes.size() - 1, 0); });
  }
  return phases;
}

Sniffed sniff(executor::Executor& executor, const comm::Communicator& world,
              std::span<const int> node_of_rank) {
  Sniffed result;
  const Sizes sizes = sizes_of(executor.describe());
  /// Of this rank, if it has `ranks`; result.problem, alike on all, when one of them cannot play.
  const auto prepared = [&](const program::ProgramSet& set, const comm::Communicator& ranks) {
    std::unique_ptr<executor::Session> session;
    std::string problem;
    try {
      if (ranks) session = executor.prepare(set, ranks);
    } catch (const base::Error& error) {
      problem = error.what();
    }
    if (const comm::Vote vote = comm::all_ok(world, problem); !vote.ok) result.problem = vote.why;
    return Player{std::move(session)};
  };

  const comm::Communicator alone = world.split(world.rank(), 0);
  Player multiplier = prepared(gemm_program(sizes), alone);
  if (result.problem) return result;
  if (const auto time = time_of_pass(std::move(multiplier), world)) {
    result.gemm_rate = 2 * std::pow(static_cast<double>(sizes.gemm), 3) / *time;
  }
  for (const Partners& partners : sniff_phases(node_of_rank)) {
    const int partner = partners[static_cast<std::size_t>(world.rank())];
    comm::Communicator pair =
        world.split(partner < 0 ? -1 : std::min(partner, world.rank()), world.rank());
    Player exchanger = prepared(exchange_program(sizes), pair);
    if (result.problem) return result;
    const std::optional<double> time = time_of_pass(std::move(exchanger), world);
    if (partner < 0) continue;
    system::CheckedNeighbour& neighbour = result.neighbours.emplace_back();
    neighbour.rank = partner;
    if (time) neighbour.bandwidth = static_cast<double>(sizes.message) / *time;
    if (!time) pair.abandon();
  }
  return result;
}

}  // namespace isoscale::runner
