// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Writes a run file for looking at pages: ten curves up to 64 ranks on nodes of eight GPUs with
// traces and samples of devices, micro-benchmarks, a rank that gets too hot, a slow link, a warning
// of preflight. All of it is simulated. Usage: make_page_run FILE [RANKS] [SEED] [EVERY]
// EVERY = 4: only each fourth curve, for a page that is drawn fast.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "mesh/request.hpp"
#include "preflight/check.hpp"
#include "preflight/job_facts.hpp"
#include "results/writer/writer.hpp"
#include "simulated_points.hpp"
#include "tests/unit/bench_samples.hpp"
#include "workloads/registry.hpp"

namespace isoscale {
namespace {

results::PreflightData preflight() {
  results::PreflightData made;
  for (results::CheckResult& result : preflight::check_job({}, {})) {
    if (result.name == "port-rate") {
      result.verdict = results::Verdict::warning;
      result.host = simulated_points::host_of(1);
      result.device = "mlx5_3 port 1";
      result.what = "runs at 200 Gbit/s, all others at 400";
      result.cost = "half the bandwidth of one rail";
      result.fix = "reseat the cable";
    }
    made.results.push_back(std::move(result));
  }
  return made;
}

std::vector<simulated_points::Wanted> curves() {
  std::vector<simulated_points::Wanted> wanted;
  for (const workloads::Scaling scaling : {workloads::Scaling::strong, workloads::Scaling::weak}) {
    const bool is_strong = scaling == workloads::Scaling::strong;
    const workloads::Options samples{{"microbatch", "1"}, {"microbatches", is_strong ? "64" : "2"}};
    const workloads::Options stages{{"microbatch", "1"}, {"microbatches", "8"}};
    workloads::Options gpipe = stages, one_f_one_b = stages;
    gpipe["schedule"] = "gpipe";
    one_f_one_b["schedule"] = "1f1b";
    workloads::Options mixed = one_f_one_b;
    mixed["microbatches"] = is_strong ? "32" : "8";
    wanted.push_back({"dp", scaling, samples});
    wanted.push_back({"tp", scaling, {{"microbatch", "2"}, {"microbatches", "2"}}});
    wanted.push_back({"pp", scaling, gpipe});
    wanted.push_back({"pp", scaling, one_f_one_b});
    wanted.push_back({"hybrid", scaling, mixed});
  }
  return wanted;
}

mesh::Shape natural_mesh(const char* workload, int ranks) {
  mesh::Shape shape;
  for (const auto& [axis, extent] : workloads::find_workload(workload).natural_mesh(ranks)) {
    shape[axis] = extent;
  }
  return shape;
}

results::PointData collectives(int index, int ranks) {
  results::PointData point = samples::bench_point(index, "collectives", ranks);
  const double rate = ranks > simulated_points::per_node ? 44e9 : 370e9;
  const double latency = ranks > simulated_points::per_node ? 32e-6 : 11e-6;
  for (const char* const op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    const double factor = std::string_view{op} == "all_reduce" ? 2 : 1;
    for (double bytes = 8; bytes <= 256 * samples::mib; bytes *= 2) {
      point.rows.push_back(samples::collective(op, bytes, latency + factor * bytes / rate, ranks));
      point.rows.back().text["class"] =
          ranks > simulated_points::per_node ? "several nodes" : "one node";
    }
  }
  return point;
}

/// All pairs; what leaves rank 11 for other nodes is slow.
results::PointData pairs(int index, int ranks) {
  results::PointData point = samples::bench_point(index, "p2p", ranks);
  constexpr int slow = 11;
  const auto add = [&](const char* kind, int src, int dst, double bytes, double time) {
    const bool is_near = src / simulated_points::per_node == dst / simulated_points::per_node;
    const bool is_rail = src % simulated_points::per_node == dst % simulated_points::per_node;
    const char* const link = is_near   ? "same node, NVLink"
                             : is_rail ? "other node, same rail"
                                       : "other node";
    results::RowData made = samples::row({{"op", "p2p"}, {"kind", kind}, {"class", link}},
                                         {{"src", src}, {"dst", dst}, {"bytes", bytes}}, time, 2);
    made.ranks = {src, dst};
    point.rows.push_back(std::move(made));
  };
  for (int src = 0; src < ranks; ++src) {
    for (int dst = 0; dst < ranks; ++dst) {
      if (src == dst) continue;
      const bool is_near = src / simulated_points::per_node == dst / simulated_points::per_node;
      const double wiggle = 1 + 0.01 * ((src * 5 + dst * 3) % 7);
      double speed = (is_near ? 380e9 : 48e9) / wiggle;
      if (src == slow && !is_near) speed *= 0.55;
      if (src < dst) add("latency", src, dst, 8, (is_near ? 6e-6 : 14e-6) * wiggle);
      add("bandwidth", src, dst, 64 * samples::mib, 64 * samples::mib / speed);
      if (src < dst) add("bidirectional", src, dst, 128 * samples::mib, 64 * samples::mib / speed);
    }
  }
  return point;
}

results::PointData gemms(int index, int ranks) {
  results::PointData point = samples::bench_point(index, "gemm", ranks);
  for (const auto& [dtype, peak] : {std::pair{"bf16", 780e12}, {"tf32", 390e12}, {"f64", 60e12}}) {
    for (double size = 128; size <= 8192; size *= 2) {
      const double flop = 2 * size * size * size;
      const double rate = peak * flop / (flop + 6e9);
      point.rows.push_back(samples::gemm(dtype, "cold", size, rate, ranks));
      point.rows.push_back(samples::gemm(dtype, "warm", size, rate * 1.1, ranks));
    }
  }
  return point;
}

results::PointData memory(int index, int ranks) {
  results::PointData point = samples::bench_point(index, "memory", ranks);
  for (const auto& [kind, speed] : {std::pair{"copy", 2.6e12},
                                    {"triad", 2.9e12},
                                    {"host to device", 52e9},
                                    {"device to host", 54e9}}) {
    for (const char* const together : {"one", "all"}) {
      const double bytes = 1024 * samples::mib;
      point.rows.push_back(samples::row({{"op", "memory"}, {"kind", kind}, {"together", together}},
                                        {{"bytes", bytes}, {"numa", 0}}, bytes / speed, ranks));
    }
  }
  return point;
}

void write(const char* file, int ranks, std::uint64_t seed, std::size_t every) {
  std::mt19937_64 random{seed};
  results::RunData run =
      simulated_points::header(ranks, fmt::format("{:016x}", 0x9a6e0000ULL + seed),
                               fmt::format("2026-11-{:02}T09:00:00Z", 1 + seed % 28));
  run.preflight = preflight();
  results::RunWriter writer{file, run, settings::IfExists::overwrite};
  int index = 0;
  std::vector<simulated_points::Wanted> wanted = curves();
  for (std::size_t curve = 0; curve < wanted.size(); curve += every) {
    for (int count = 1; count <= ranks; count *= 2) {
      wanted[curve].mesh = natural_mesh(wanted[curve].workload, count);
      writer.commit(simulated_points::measured(index++, wanted[curve], random));
    }
  }
  for (int count = 2; count <= ranks; count *= 4) writer.commit(collectives(index++, count));
  writer.commit(pairs(index++, ranks));
  writer.commit(gemms(index++, std::min(ranks, simulated_points::per_node)));
  writer.commit(memory(index++, std::min(ranks, simulated_points::per_node)));
  writer.commit(samples::overlaps(index++));
  writer.finish(run);
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    std::fputs("usage: make_page_run FILE [RANKS] [SEED] [EVERY]\n", stderr);
    return 2;
  }
  try {
    isoscale::write(argv[1], isoscale::bench::argument(argc, argv, 2, 64),
                    static_cast<std::uint64_t>(isoscale::bench::argument(argc, argv, 3, 1)),
                    static_cast<std::size_t>(isoscale::bench::argument(argc, argv, 4, 1)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_page_run: %s\n", error.what());
    return 1;
  }
}
