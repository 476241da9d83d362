// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/microbench/rank_and_pair_speeds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "base/warn.hpp"
#include "program/builder.hpp"
#include "timeline/timeline.hpp"
#include "workloads/gemm/gemm.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::runner::microbench {
namespace {

constexpr units::Seconds stretch{0.2};  ///< a play should take about this long
/// Number of plays; the fastest of them counts, since disturbances only slow plays down.
constexpr int sniff_plays = 3;
constexpr std::uint32_t most_passes = 1024;
constexpr units::Seconds answer_time{10};  ///< a message that takes longer than this counts as lost

/// The ascending sizes of the sniff test, the speed test before a run. A larger size comes closer
/// to a device's best rate; it is skipped if the time of the smaller one predicts too long a time.
struct Sizes {
  program::DType dtype{};               ///< type of the matrices
  std::vector<std::uint64_t> gemms;     ///< sizes of square matrices, m = n = k
  std::vector<std::uint64_t> messages;  ///< sizes of messages in bytes
};
Sizes sizes_of(const executor::Description& device) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  using program::DType;
  if (device.name == "host") {
    return {.dtype = DType::f32, .gemms = {256, 768}, .messages = {mib, 8 * mib}};
  }
  const bool has_bf16 = std::ranges::count(device.precisions, program::Precision::bf16) > 0;
  return {.dtype = has_bf16 ? DType::bf16 : DType::f32,
          .gemms = {1024, 8192},
          .messages = {8 * mib, 256 * mib}};
}

/// Returns programs in which each rank multiplies its own matrices once.
program::ProgramSet gemm_program(const workloads::gemm::Shape& shape, const mesh::Shape& mesh) {
  program::Builder builder{mesh};
  workloads::gemm::Operands operands{builder};
  operands.reserve(shape, 1);
  operands.fill();
  builder.begin(program::Section::step);
  builder.emit(builder.stream("compute"), operands.multiplication(shape, 0));
  return program::alike(mesh, builder.finish());
}

/// Returns the programs of two ranks that send `bytes` to each other at the same time.
program::ProgramSet exchange_program(std::uint64_t bytes) {
  const mesh::Shape pair{.pp = 2};
  program::Builder builder{pair};
  const program::StreamId stream = builder.stream("compute");
  const auto buffer = [&](program::Role role) {
    return builder.allocate({.dtype = program::DType::u8, .role = role, .count = bytes});
  };
  const program::BufferId out = buffer(program::Role::input);
  const program::BufferId in = buffer(program::Role::workspace);
  builder.emit(
      stream,
      program::Fill{.dst = builder.whole(out),
                    .shard = {.extents = {bytes, 1, 1}, .local = {1, 0, 0}, .global = {1, 0, 0}},
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
  return program::alike(pair, builder.finish());
}

/// Returns the seconds of a play. If this rank's partner does not answer, at the latest after
/// answer_time, returns nullopt and sets `session` to null. Also returns nullopt if `session` is
/// null already: this rank has nothing to play now, or its partner did not answer before.
std::optional<double> play(executor::SessionPtr& session, program::Section section,
                           std::uint32_t times) {
  if (!session) return std::nullopt;
  try {
    const auto time = session->play({.section = section, .times = times, .timeout = answer_time});
    return units::to_seconds(time.end - time.begin).value();
  } catch (const executor::NoAnswer& error) {
    base::warn(fmt::format("isoscale: no answer: {}", error.what()));
    session->abandon();
    session.reset();
    return std::nullopt;
  }
}

/// Returns the seconds of a pass in the fastest of several plays; nullopt as for play(). `slowest`
/// is the time of a pass on the slowest rank. It must be the same on all ranks, since the number of
/// passes in a play follows from it.
std::optional<double> least_pass(executor::SessionPtr& session, double slowest) {
  const auto passes = static_cast<std::uint32_t>(
      std::clamp(stretch.value() / std::max(slowest, 1e-9), 1.0, double{most_passes}));
  double least = HUGE_VAL;
  for (int i = 0; i < sniff_plays; ++i) {
    const std::optional<double> next = play(session, program::Section::step, passes);
    if (!next) return std::nullopt;
    least = std::min(least, *next);
  }
  return least / passes;
}

/// Plays programs of increasing size to find this rank's rate. rate() is collective over the world.
class Sniffer {
 public:
  Sniffer(executor::Executor& executor, const comm::Communicator& world)
      : executor_(executor), world_(world) {}

  /// Returns how many units of work this rank does per second, or nullopt if this rank is not in
  /// `ranks`, if its partner does not answer within answer_time, or if there is a problem(). The
  /// ranks of `ranks` play `program_of(size)`, which does `work_of(size)` units of work. The size
  /// is the largest of `sizes` for which one pass is expected to be shorter than `stretch`; if
  /// there is none, it is the smallest size.
  template <class ProgramOf, class WorkOf>
  std::optional<double> rate(const std::vector<std::uint64_t>& sizes, const ProgramOf& program_of,
                             const WorkOf& work_of, const comm::Communicator& ranks) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      executor::SessionPtr session = prepared(program_of(sizes[i]), ranks);
      if (problem_) return std::nullopt;
      // One pass is made before timing, in which ranks connect and memory pages are mapped.
      static_cast<void>(play(session, program::Section::setup, 1));
      static_cast<void>(play(session, program::Section::step, 1));
      const std::optional<double> first = play(session, program::Section::step, 1);
      // All ranks of the world choose the next size together, also those whose partner did not
      // answer. Otherwise other ranks would wait for them in this choice.
      const double slowest = world_.all_max(first.value_or(ranks ? answer_time.value() : 0));
      const bool has_next = i + 1 < sizes.size();
      const double growth = has_next ? work_of(sizes[i + 1]) / work_of(sizes[i]) : 1;
      if (has_next && slowest * growth < stretch.value()) continue;
      const std::optional<double> time = least_pass(session, slowest);
      return time ? std::optional{work_of(sizes[i]) / *time} : std::nullopt;
    }
    return std::nullopt;
  }

  /// Returns the reason why the test cannot go on, the same on all ranks; absent if it can.
  [[nodiscard]] const std::optional<std::string>& problem() const { return problem_; }

 private:
  executor::SessionPtr prepared(const program::ProgramSet& set, const comm::Communicator& ranks) {
    executor::SessionPtr session;
    const std::string problem = comm::problem_in([&] {
      if (ranks) session = executor_.prepare(set, ranks, {.connects_in_play = true});
    });
    if (const comm::Vote vote = comm::all_ok(world_, problem); !vote.ok) problem_ = vote.why;
    return session;
  }

  executor::Executor& executor_;
  const comm::Communicator& world_;
  std::optional<std::string> problem_;
};

constexpr double measuring_time = 0.3;  // approximate seconds of all plays together
constexpr int fewest_timed = 5, most_timed = 50;

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
  Sniffer sniffer{executor, world};
  const comm::Communicator alone = world.split(world.rank(), 0);
  const auto square_gemm = [type = sizes.dtype](std::uint64_t size) {
    const auto n = static_cast<std::uint32_t>(size);
    return gemm_program({.m = n, .n = n, .k = n, .a = type, .b = type, .d = type}, {});
  };
  result.gemm_rate = sniffer.rate(
      sizes.gemms, square_gemm,
      [](std::uint64_t size) { return 2 * std::pow(static_cast<double>(size), 3); }, alone);
  for (const Partners& partners : sniff_phases(node_of_rank)) {
    if (sniffer.problem()) break;
    const int partner = partners[static_cast<std::size_t>(world.rank())];
    comm::Communicator pair =
        world.split(partner < 0 ? -1 : std::min(partner, world.rank()), world.rank());
    const std::optional<double> bandwidth = sniffer.rate(
        sizes.messages, exchange_program,
        [](std::uint64_t bytes) { return static_cast<double>(bytes); }, pair);
    if (partner < 0 || sniffer.problem()) continue;
    result.neighbours.push_back({.rank = partner, .bandwidth = bandwidth});
    if (!bandwidth) pair.abandon();
  }
  result.problem = sniffer.problem();
  return result;
}

bool partitions_by_speed(const workloads::Request& request) {
  using workloads::stack::Partition, workloads::stack::TrainingOptions;
  const auto partition =
      workloads::stack::option_of(request, "partition", &TrainingOptions::partition);
  return partition.kind == Partition::Kind::proportional && request.mesh.dp > 1;
}

program::ProgramSet largest_multiplication(const program::ProgramSet& set) {
  std::optional<workloads::gemm::Shape> largest;
  for (const program::RankProgram& program : set.programs) {
    for (const program::Op& op : program.step().ops) {
      const auto* gemm = std::get_if<program::Gemm>(&op.payload);
      if (gemm == nullptr) continue;
      const workloads::gemm::Shape shape = workloads::gemm::shape_of(*gemm, program);
      if (!largest || shape.flop() > largest->flop()) largest = shape;
    }
  }
  if (!largest) throw base::Error("no GEMM was found to measure speeds with");
  return gemm_program(*largest, set.mesh);
}

std::vector<double> measure_speeds(const program::ProgramSet& set, executor::Executor& executor,
                                   const comm::Communicator& point, const program::Faults& faults) {
  executor::SessionPtr session;
  const std::string problem =
      comm::problem_in([&] { session = executor.prepare(set, point, {.faults = faults}); });
  if (const comm::Vote vote = comm::all_ok(point, problem); !vote.ok) throw base::Error(vote.why);
  const auto play = [&] {
    session->play({.section = program::Section::step, .trace = executor::Trace::on});
    return session->spans().front().end - session->spans().front().start;
  };
  session->play({.section = program::Section::setup});
  static_cast<void>(play());
  const double once = point.all_max(units::to_seconds(play()).value());
  const int plays = static_cast<int>(
      std::clamp(measuring_time / std::max(once, 1e-9), double{fewest_timed}, double{most_timed}));
  std::vector<units::Nanoseconds> times;
  point.barrier();
  for (int i = 0; i < plays; ++i) times.push_back(play());
  const double median = std::max(units::to_seconds(timeline::median(times)).value(), 1e-9);
  const program::RankProgram& program = set.programs.front();
  const auto& gemm = std::get<program::Gemm>(program.step().ops.front().payload);
  return point.all_gather(workloads::gemm::shape_of(gemm, program).flop() / median);
}

}  // namespace isoscale::runner::microbench
