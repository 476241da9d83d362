// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// How often the gate of isoscale compare fires, on pairs of machines that are simulated: every
// launch is off by a lognormal factor of 3%, every step by one of 2%, 5 launches a side. Prints the
// share of pairs that --gate 5% fails where nothing changed, where the loss is the gate itself and
// 8% and 20%, for curves of 1 point and of 5. Everything but the times is the program's own path
// from run data to verdict. Usage: bench_gate [PAIRS] [STEPS] [LAUNCHES]
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/comparison.hpp"
#include "analysis/report.hpp"
#include "bench.hpp"
#include "results/records/run_data.hpp"
#include "tests/unit/bench_samples.hpp"

namespace isoscale {
namespace {

constexpr double launch_noise = 0.03, step_noise = 0.02, gate = 0.05;
constexpr std::uint64_t seed = 20'261'121;

struct Setting {
  int points = 1, launches = 5, steps = 200;
  double loss = 0;  ///< of throughput, of every point of the second side
};

results::PointData point_of(int index, const Setting& setting, double time,
                            std::mt19937_64& random) {
  std::normal_distribution<double> noise{0, step_noise};
  results::PointData point = samples::bench_point(index, "dp", 1 << index);
  point.model = "tiny";
  point.throughput_unit = "tokens/s";
  point.work_per_step = 1024;
  // Only the slowest rank of a step counts: one column is as good as all.
  for (int step = 0; step < setting.steps; ++step) {
    point.step_times.push_back({time / point.ranks * std::exp(noise(random))});
  }
  point.traced.assign(point.step_times.size(), 0);
  point.dropped.assign(point.step_times.size(), 0);
  return point;
}

std::vector<results::RunData> side(const std::string& name, const Setting& setting, double loss,
                                   std::mt19937_64& random) {
  std::normal_distribution<double> noise{0, launch_noise};
  std::vector<results::RunData> runs;
  for (int launch = 0; launch < setting.launches; ++launch) {
    results::RunData run;
    run.id = name + std::to_string(launch);
    run.device = "host";
    run.complete = true;
    for (int i = 0; i < setting.points; ++i) {
      // Every point of a launch is off by itself: the hardest case for a family of tests.
      run.points.push_back(
          point_of(i, setting, 0.1 / (1 - loss) * std::exp(noise(random)), random));
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

struct Shares {
  double fired = 0;                              ///< pairs that the gate fails
  double points = 0, passed = 0, too_noisy = 0;  ///< of all points, by verdict
};

Shares shares(int pairs, const Setting& setting) {
  std::mt19937_64 random{seed};
  Shares result;
  for (int pair = 0; pair < pairs; ++pair) {
    const std::vector<std::vector<results::RunData>> runs{side("a", setting, 0, random),
                                                          side("b", setting, setting.loss, random)};
    std::vector<std::vector<analysis::RunReport>> reports;
    for (const auto& of_side : runs) {
      auto& into = reports.emplace_back();
      for (const auto& run : of_side) into.push_back(analysis::make_report(run, run.id, {}));
    }
    const analysis::compare::Comparison compared =
        analysis::compare::compare({reports.begin(), reports.end()}, {.gate = gate});
    result.fired += compared.gate->fails() ? 1.0 / pairs : 0;
    const double all = static_cast<double>(pairs) * setting.points;
    result.points += static_cast<double>(compared.gate->regressions) / all;
    result.passed += static_cast<double>(compared.gate->passed) / all;
    result.too_noisy += static_cast<double>(compared.gate->too_noisy) / all;
  }
  return result;
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) {
  namespace bench = isoscale::bench;
  const int pairs = bench::argument(argc, argv, 1, 1000);
  const int steps = bench::argument(argc, argv, 2, 200);
  const int launches = bench::argument(argc, argv, 3, 5);
  fmt::print("{} pairs, {} launches a side, {} steps; noise {}% a step, {}% a launch; gate {}%\n",
             pairs, launches, steps, 100 * isoscale::step_noise, 100 * isoscale::launch_noise,
             100 * isoscale::gate);
  fmt::print("{:>6} {:>6} {:>11} {:>18} {:>8} {:>10} {:>9}\n", "points", "loss", "gate fails",
             "points: regression", "passed", "too noisy", "time");
  for (const int points : {1, 5}) {
    for (const double loss : {0.0, isoscale::gate, 0.08, 0.20}) {
      isoscale::Shares of;
      const double time = bench::time_of([&] {
        of = isoscale::shares(
            pairs, {.points = points, .launches = launches, .steps = steps, .loss = loss});
      });
      fmt::print("{:>6} {:>5.0f}% {:>10.1f}% {:>17.1f}% {:>7.1f}% {:>9.1f}% {:>7.1f} s\n", points,
                 100 * loss, 100 * of.fired, 100 * of.points, 100 * of.passed, 100 * of.too_noisy,
                 time);
    }
  }
}
