// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Measures what the measurement of a collective costs beside a bare loop around the same MPI call,
// at the same thread level and placement, per-op spans off.
// Usage: mpirun -np 2 bench_collectives [ALTERNATIONS [SIZES]], SIZES as the workload takes them
// Prints, by operation and size, the median time of one call on the slowest rank, played and bare,
// and how far apart they are; "ok" when within 2% or 10 ns, whichever is larger.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench.hpp"
#include "comm/communicator.hpp"
#include "executor/host/host.hpp"
#include "executor/host/resources.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/collectives/collectives.hpp"

namespace isoscale {
namespace {

constexpr std::uint64_t calls_below = 64 * 1024;  // bytes; 1,000 calls a timing
constexpr std::uint64_t bytes_above = std::uint64_t{64} << 20U;

using Call = std::function<void(const float* send, float* receive, int count)>;

struct Operation {
  std::string name;
  Call bare;  ///< count as the row has it: of a part where there are parts
};

std::vector<Operation> operations(MPI_Comm comm) {
  return {{"all_reduce",
           [comm](const float* send, float* receive, int count) {
             MPI_Allreduce(send, receive, count, MPI_FLOAT, MPI_SUM, comm);
           }},
          {"all_gather",
           [comm](const float* send, float* receive, int count) {
             MPI_Allgather(send, count, MPI_FLOAT, receive, count, MPI_FLOAT, comm);
           }},
          {"reduce_scatter", [comm](const float* send, float* receive, int count) {
             MPI_Reduce_scatter_block(send, receive, count, MPI_FLOAT, MPI_SUM, comm);
           }}};
}

/// Seconds of `work` on the slowest rank, all starting from a barrier.
double slowest(const comm::Communicator& world, const std::function<void()>& work) {
  world.barrier();
  return world.all_max(bench::time_of(work));
}

void bench_operation(const Operation& operation, executor::Executor& executor,
                     const comm::Communicator& world, int alternations, const std::string& sizes) {
  workloads::Request request;
  request.mesh.dp = world.size();
  request.options = {{"op", operation.name}, {"sizes", sizes}, {"in_place", "no"}, {"rotate", "1"}};
  const workloads::Bench benchmark = workloads::collectives::build(request, 0);
  const auto session = executor.prepare(benchmark.set, world);
  session->play(program::Section::setup, executor::Trace::off);
  // Memory of the same kind as the session's, laid out like it.
  const program::RankProgram& program = benchmark.set.of(world.rank());
  const std::uint64_t room = program.buffers.back().offset / sizeof(float);
  const auto storage = executor::host::allocate(units::Bytes{program.arena_bytes.front()});
  auto* const send = reinterpret_cast<float*>(storage.get().address);  // NOLINT: raw memory
  float* const receive = send + room;
  std::fill(send, send + program.arena_bytes.front() / sizeof(float), 1.0F);
  for (const workloads::Case& one : benchmark.cases) {
    const workloads::RowSpec& row = benchmark.rows[one.row_begin];
    const auto bytes = static_cast<std::uint64_t>(row.number.at("bytes"));
    const auto count = static_cast<int>(row.number.at("count"));
    const std::uint64_t times =
        bytes < calls_below ? 1000 : std::max<std::uint64_t>(1, bytes_above / bytes);
    const auto played = [&] {
      session->play({.section = one.section, .times = static_cast<std::uint32_t>(times)});
    };
    const auto bare = [&] {
      for (std::uint64_t i = 0; i < times; ++i) operation.bare(send, receive, count);
    };
    std::vector<double> of_played, of_bare, difference;
    slowest(world, played);
    slowest(world, bare);
    for (int round = 0; round < alternations; ++round) {
      const bool played_first = round % 2 == 0;
      const double first = slowest(world, played_first ? std::function<void()>{played} : bare);
      const double second = slowest(world, played_first ? std::function<void()>{bare} : played);
      const auto calls = static_cast<double>(times);
      of_played.push_back((played_first ? first : second) / calls);
      of_bare.push_back((played_first ? second : first) / calls);
      difference.push_back(of_played.back() - of_bare.back());
    }
    const double base = bench::median(of_bare), more = bench::median(difference);
    const bool within = std::abs(more) <= std::max(0.02 * base, 10e-9);
    if (world.rank() == 0) {
      fmt::print(
          "{:<15} {:>9} B  played {:>11.3f} us  bare {:>11.3f} us  {:>+9.1f} ns {:>+6.2f}%  {}\n",
          operation.name, bytes, bench::median(of_played) * 1e6, base * 1e6, more * 1e9,
          more / base * 100, within ? "ok" : "APART");
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) {
  const isoscale::comm::Environment environment{&argc, &argv};
  const auto world = isoscale::comm::Communicator::world();
  const int alternations = isoscale::bench::argument(argc, argv, 1, 11);
  const auto executor =
      isoscale::executor::make_host_executor({.thread_level = environment.thread_level()});
  const auto group = world.split(0, world.rank());  // as a session makes its own
  for (const auto& operation : isoscale::operations(group.get())) {
    isoscale::bench_operation(operation, *executor, world, alternations,
                              argc > 2 ? argv[2] : "8..16MiB");
  }
}
