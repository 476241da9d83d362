// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// How long a search for the best mesh and options takes, and what it finds.
// Usage: bench_search SYSTEM.toml [RANKS] [BATCH] [MODEL]
#include <fmt/format.h>

#include <ctime>
#include <string>

#include "analysis/predict/search.hpp"
#include "analysis/predict/system_file.hpp"
#include "bench.hpp"
#include "units/quantity.hpp"
#include "units/text.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale {
namespace {

/// Returns the processor time of all threads of this process.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void print(const analysis::predict::Candidate& candidate) {
  std::string text = mesh::to_string(candidate.request.mesh);
  for (const char* const key :
       {"microbatch", "microbatches", "schedule", "v", "zero", "recompute"}) {
    const auto found = candidate.request.options.find(key);
    if (found != candidate.request.options.end()) text += fmt::format(" {}={}", key, found->second);
  }
  fmt::print("{:<100} {:>9} {:>10}  {}\n", text, units::format(units::Seconds{candidate.step_time}),
             units::format(units::Bytes{static_cast<std::uint64_t>(candidate.memory_per_rank)}),
             candidate.why_not);
}

int run(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_search SYSTEM.toml [RANKS] [BATCH] [MODEL]\n");
    return 2;
  }
  const simulate::Machine machine = analysis::predict::load_system(argv[1]);
  const int ranks = bench::argument(argc, argv, 2, 1024);
  const int batch = bench::argument(argc, argv, 3, 1536);
  const workloads::Request base{.model = workloads::load_model(argc > 4 ? argv[4] : "gpt-175b"),
                                .precision = program::Precision::bf16,
                                .options = {{"batch", std::to_string(batch)},
                                            {"microbatch", "1"},
                                            {"optimizer", "adam"},
                                            {"elementwise", "on"},
                                            {"vocabulary", "on"}}};
  const double cpu = cpu_seconds(), begin = bench::seconds_now();
  const analysis::predict::SearchResult result =
      analysis::predict::search(workloads::find_workload("hybrid"), base, {}, ranks, machine,
                                machine.network ? machine.network->node_ranks : 1, {});
  fmt::print(
      "{} on {} ranks of {}: {} candidates ({} impossible, {} too large, {} simulated{}) in "
      "{:.1f} s, {:.1f} s of CPU (goal: 10 s on 2 cores)\n",
      base.model.name, ranks, machine.name, result.looked_at, result.impossible, result.too_large,
      result.simulated, result.complete ? "" : ", not to the end", bench::seconds_now() - begin,
      cpu_seconds() - cpu);
  for (const analysis::predict::Candidate& candidate : result.best) print(candidate);
  return 0;
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) { return isoscale::run(argc, argv); }
