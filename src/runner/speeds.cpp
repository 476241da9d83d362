// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/speeds.hpp"
#include "runner/problem.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "program/builder.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::runner {
namespace {

constexpr double measuring_time = 0.3;  // seconds that the plays take together, about
constexpr int fewest_timed = 5, most_timed = 50;

double flop_of(const program::Gemm& gemm) { return 2.0 * gemm.m * gemm.n * gemm.k * gemm.batch; }

/// `batch` dense matrices in a buffer of their own, filled with values up to 1.
program::Matrix filled(program::Builder& builder, program::DType type, std::uint32_t rows,
                       std::uint32_t columns, std::uint32_t batch) {
  const std::uint64_t each = std::uint64_t{rows} * columns, count = each * batch;
  const program::BufferId buffer = builder.allocate({.dtype = type, .count = count});
  constexpr int largest_is_one = -7;
  builder.emit(
      0, program::Fill{.dst = builder.whole(buffer),
                       .shard = {.extents = {1, 1, count}, .local = {0, 0, 1}, .global = {0, 0, 1}},
                       .key = buffer + 1,
                       .exponent = largest_is_one});
  return {.slice = builder.whole(buffer), .row_stride = columns, .batch_stride = each};
}

/// The same product of dense matrices that nothing else needs.
program::RankProgram alone(const program::Gemm& gemm, const program::RankProgram& of,
                           const mesh::Shape& mesh) {
  program::Builder builder{mesh};
  const auto type = [&](const program::Matrix& matrix) {
    return of.buffers[matrix.slice.buffer].dtype;
  };
  const bool a_flips = gemm.transpose_a == program::Transpose::yes;
  const bool b_flips = gemm.transpose_b == program::Transpose::yes;
  builder.at({.phase = program::Phase::setup});
  program::Gemm copy = gemm;
  copy.alpha = 1;
  copy.beta = 0;
  copy.descale_a = copy.descale_b = program::no_buffer;
  copy.c = {};
  copy.a = filled(builder, type(gemm.a), a_flips ? gemm.k : gemm.m, a_flips ? gemm.m : gemm.k,
                  gemm.batch);
  copy.b = filled(builder, type(gemm.b), b_flips ? gemm.n : gemm.k, b_flips ? gemm.k : gemm.n,
                  gemm.batch);
  copy.d = filled(builder, type(gemm.d), gemm.m, gemm.n, gemm.batch);
  builder.begin(program::Section::step);
  builder.at({.phase = program::Phase::forward});
  builder.emit(0, copy);
  return builder.finish();
}

/// What a rank's number is to all, bit for bit.
std::vector<double> all_gather(const comm::Communicator& point, double mine) {
  std::vector<double> result;
  for (const std::int64_t bits : point.all_gather(std::bit_cast<std::int64_t>(mine))) {
    result.push_back(std::bit_cast<double>(bits));
  }
  return result;
}

}  // namespace

bool deals_by_speed(const workloads::Request& request) {
  const auto partition = request.options.find("partition");
  return partition != request.options.end() && partition->second == "proportional" &&
         request.mesh.dp > 1;
}

program::ProgramSet largest_multiplication(const program::ProgramSet& set) {
  const program::Gemm* largest = nullptr;
  const program::RankProgram* owner = nullptr;
  for (const program::RankProgram& program : set.programs) {
    for (const program::Op& op : program.step().ops) {
      const auto* gemm = std::get_if<program::Gemm>(&op.payload);
      if (gemm == nullptr || (largest != nullptr && flop_of(*gemm) <= flop_of(*largest))) continue;
      largest = gemm;
      owner = &program;
    }
  }
  if (largest == nullptr) throw base::Error("no GEMM was found to measure speeds with");
  program::ProgramSet result{
      .mesh = set.mesh,
      .programs = {},
      .program_of_rank = std::vector<std::uint32_t>(set.program_of_rank.size(), 0)};
  result.programs.push_back(alone(*largest, *owner, set.mesh));
  return result;
}

std::vector<double> measure_speeds(const program::ProgramSet& set, executor::Executor& executor,
                                   const comm::Communicator& point, const program::Faults& faults) {
  std::unique_ptr<executor::Session> session;
  std::string problem;
  try {
    session = executor.prepare(set, point, {.faults = faults});
  } catch (const std::exception& error) {
    problem = problem_of(error);
  }
  if (const comm::Vote vote = comm::all_ok(point, problem); !vote.ok) throw base::Error(vote.why);
  const auto play = [&] {
    session->play(program::Section::step, executor::Trace::on);
    return session->spans().front().end - session->spans().front().start;
  };
  session->play(program::Section::setup, executor::Trace::off);
  static_cast<void>(play());
  const double once = point.all_max(units::to_seconds(play()).value());
  const int plays = static_cast<int>(
      std::clamp(measuring_time / std::max(once, 1e-9), double{fewest_timed}, double{most_timed}));
  std::vector<units::Nanoseconds> times;
  point.barrier();
  for (int i = 0; i < plays; ++i) times.push_back(play());
  const double median = std::max(units::to_seconds(timeline::median(times)).value(), 1e-9);
  const auto& gemm = std::get<program::Gemm>(set.programs.front().step().ops.front().payload);
  return all_gather(point, flop_of(gemm) / median);
}

}  // namespace isoscale::runner
