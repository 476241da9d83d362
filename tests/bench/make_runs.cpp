// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Makes run files for bench_report.py. Usage:
//   make_runs big FILE [RANKS]     a hybrid curve of 1 to 64 ranks, and a point of RANKS (4,096)
//   make_runs many DIRECTORY [COUNT]   COUNT (1,000) runs of the quick suite on 8 ranks
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/writer/writer.hpp"
#include "simulated_points.hpp"
#include "tests/unit/bench_samples.hpp"

namespace isoscale {
namespace {

using simulated_points::per_node;

void write(const std::filesystem::path& file, results::RunData run,
           const std::vector<results::PointData>& points) {
  results::RunWriter writer{file, run, settings::IfExists::overwrite};
  for (const results::PointData& point : points) writer.commit(point);
  writer.finish(run);
}

/// Weak scaling, so that a rank's program is as long at every size: tp and pp within a node and 8
/// of them, then copies along dp.
mesh::Shape hybrid_mesh(int ranks) {
  mesh::Shape shape;
  shape.tp = std::min(ranks, 8);
  shape.pp = std::min(ranks / shape.tp, 8);
  shape.dp = ranks / shape.tp / shape.pp;
  return shape;
}

void make_big(const std::filesystem::path& file, int ranks) {
  const auto wanted = [](int size) {
    return simulated_points::Wanted{.workload = "hybrid",
                                    .scaling = workloads::Scaling::weak,
                                    .options = {{"microbatch", "1"}, {"microbatches", "32"}},
                                    .model = "gpt-1.3b",
                                    .mesh = hybrid_mesh(size),
                                    .samples = 120,
                                    .traced_ranks = 64};
  };
  const results::RunData run = simulated_points::header(ranks, "b16", "2026-01-02T03:04:05Z");
  results::RunWriter writer{file, run, settings::IfExists::overwrite};
  std::mt19937_64 random{1};
  int index = 0;
  for (int size = 1; size <= 64 && size < ranks; size *= 2) {
    writer.commit(simulated_points::measured(index++, wanted(size), random));
  }
  writer.commit(simulated_points::measured(index, wanted(ranks), random));
  writer.finish(run);
}

/// The quick suite on 8 ranks.
std::vector<results::PointData> quick_suite() {
  std::vector<results::PointData> points{samples::collectives(0), samples::gemms(1),
                                         samples::pairs(2), samples::memory(3),
                                         samples::overlaps(4)};
  const std::pair<const char*, int mesh::Shape::*> curves[] = {
      {"dp", &mesh::Shape::dp}, {"tp", &mesh::Shape::tp}, {"pp", &mesh::Shape::pp}};
  std::mt19937_64 random{1};
  const auto add = [&](const char* workload, const mesh::Shape& shape) {
    points.push_back(simulated_points::measured(
        static_cast<int>(points.size()),
        {.workload = workload, .model = "tiny", .mesh = shape, .samples = 40}, random));
  };
  for (const auto& [workload, axis] : curves) {
    for (int ranks = 1; ranks <= 8; ranks *= 2) {
      mesh::Shape shape;
      shape.*axis = ranks;
      add(workload, shape);
    }
  }
  for (int ranks = 1; ranks <= 8; ranks *= 2) {
    add("hybrid", {.tp = ranks > 1 ? 2 : 1, .dp = ranks > 4 ? 2 : 1, .pp = ranks > 2 ? 2 : 1});
  }
  return points;
}

/// Every other run of another machine, each day one; the last fifth is 3% slower.
void make_many(const std::filesystem::path& directory, int count) {
  std::filesystem::create_directories(directory);
  std::vector<results::PointData> points = quick_suite();
  for (int i = 0; i < count; ++i) {
    results::RunData run = simulated_points::header(
        per_node, fmt::format("{:032x}", i),
        fmt::format("{}-{:02}-{:02}T03:04:05Z", 2023 + i / 336, 1 + i / 28 % 12, 1 + i % 28));
    for (results::RankFacts& facts : run.rank_facts) {
      facts.host = fmt::format("node{:04}", i % 40);
      if (i % 2 == 1) facts.text["gpu_name"] = "NVIDIA H200";
    }
    std::vector<results::PointData> mine = points;
    for (results::PointData& point : mine) {
      for (auto& step : point.step_times) {
        for (double& time : step) time *= (i > count * 4 / 5 ? 1.03 : 1) + 0.001 * (i % 7);
      }
    }
    write(directory / fmt::format("run{:04}.h5", i), std::move(run), mine);
  }
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[1] : "";
  try {
    if (what == "big") {
      isoscale::make_big(argv[2], argc > 3 ? std::atoi(argv[3]) : 4096);
      return 0;
    }
    if (what == "many") {
      isoscale::make_many(argv[2], argc > 3 ? std::atoi(argv[3]) : 1000);
      return 0;
    }
    std::fputs("usage: make_runs big FILE [RANKS] | make_runs many DIRECTORY [COUNT]\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_runs: %s\n", error.what());
    return 1;
  }
  return 2;
}
