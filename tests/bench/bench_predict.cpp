// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// How fast a step of 16,384 ranks is predicted. Usage: bench_predict SYSTEM.toml [ROUNDS]
#include <fmt/format.h>
#include <sys/resource.h>

#include <ctime>
#include <string>
#include <vector>

#include "analysis/predict/system_file.hpp"
#include "bench.hpp"
#include "simulate/classes.hpp"
#include "simulate/noise_delay.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale {
namespace {

struct Case {
  mesh::Shape mesh;
  int microbatches = 16;  ///< of each replica
};

workloads::Request request_of(const Case& of) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  workloads::Request base{.model = workloads::load_model("gpt-175b"),
                          .precision = program::Precision::bf16,
                          .options = {}};
  base.options = {{"microbatch", "1"},
                  {"microbatches", std::to_string(of.microbatches * of.mesh.dp)},
                  {"elementwise", "on"},
                  {"recompute", "full"}};
  return hybrid.scale(base, of.mesh, workloads::Scaling::strong);
}

std::size_t op_count(const program::ProgramSet& set) {
  std::size_t ops = 0;
  for (const program::RankProgram& program : set.programs) ops += program.step().ops.size();
  return ops;
}

/// The parts of a step of like ranks, from request to seconds.
void by_class(const Case& of, const simulate::Machine& machine, int rounds) {
  constexpr auto step = program::Section::step;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const workloads::Request request = request_of(of);
  const simulate::Layout layout = simulate::packed(of.mesh.size(), 8);
  std::vector<double> all, cpu, build, classes, costs, play;
  std::size_t ops = 0;
  double seconds = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::clock_t cpu_begin = std::clock();
    const double begin = bench::seconds_now();
    const program::ProgramSet set = hybrid.build(request);
    const double built = bench::seconds_now();
    const simulate::Classes of_ranks = simulate::classes_of(set, step);
    const double classed = bench::seconds_now();
    const simulate::Costs of_classes = simulate::class_costs(of_ranks, set, step, machine, layout);
    const double known = bench::seconds_now();
    seconds = simulate::play_classes(of_ranks, of_classes, {}, simulate::Record::steps).seconds;
    const double end = bench::seconds_now();
    ops = op_count(set);
    build.push_back(built - begin);
    classes.push_back(classed - built);
    costs.push_back(known - classed);
    play.push_back(end - known);
    all.push_back(end - begin);
    cpu.push_back(static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC);
  }
  fmt::print(
      "{} x {:>2} microbatches: {:>7} ops, step {:.3f} s: build {:.3f} + classes {:.3f} + costs "
      "{:.3f} + play {:.3f} = {:.3f} s (goal 0.5), {:.3f} s of a core\n",
      mesh::to_string(of.mesh), of.microbatches, ops, seconds, bench::median(build),
      bench::median(classes), bench::median(costs), bench::median(play), bench::median(all),
      bench::median(cpu));
}

double peak_gigabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / (1 << 30);
}

/// Every rank apart, with noise, over the default number of steps.
void each_rank(const Case& of, const simulate::Machine& machine, const simulate::Noise& noise,
               const std::string& what) {
  constexpr auto step = program::Section::step;
  const double begin = bench::seconds_now();
  const program::ProgramSet set = workloads::find_workload("hybrid").build(request_of(of));
  const simulate::Layout layout = simulate::packed(of.mesh.size(), 8);
  const simulate::Classes classes = simulate::classes_of(set, step);
  const simulate::Costs costs = simulate::class_costs(classes, set, step, machine, layout);
  const simulate::ClassStep alike =
      simulate::play_classes(classes, costs, {}, simulate::Record::steps);
  const std::vector<double> steps = simulate::play_each_rank(set, classes, costs, noise, layout);
  const double played = bench::seconds_now();
  const double expected = simulate::expected_delay(set, classes, alike.costs, noise, layout);
  const double end = bench::seconds_now();
  double mean = 0;
  for (const double seconds : steps) mean += seconds / static_cast<double>(steps.size());
  fmt::print(
      "{} x {:>2}, {}: {} ranks, 1 + {} steps in {:.2f} s (goal 60), {:.2f} GiB at most (goal 8): "
      "{:.4f} s a step, {:.4f} more than without; expected {:.4f} more, in {:.3f} s\n",
      mesh::to_string(of.mesh), of.microbatches, what, of.mesh.size(), steps.size(), played - begin,
      peak_gigabytes(), mean, mean - alike.seconds, expected, end - played);
}

int run(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_predict SYSTEM.toml [ROUNDS]\n");
    return 2;
  }
  const simulate::Machine machine = analysis::predict::load_system(argv[1]);
  const int rounds = bench::argument(argc, argv, 2, 5);
  const Case pipelines[] = {{{.tp = 8, .dp = 128, .pp = 16}, 16},
                            {{.tp = 8, .dp = 256, .pp = 8}, 32},
                            {{.tp = 8, .dp = 128, .pp = 16}, 32},
                            {{.tp = 8, .dp = 128, .pp = 16}, 64}};
  for (const Case& of : pipelines) by_class(of, machine, rounds);
  for (const Case& of : {pipelines[0], pipelines[3]}) {
    each_rank(of, machine, {.rank = 0.02, .node = 0.01}, "noise of ranks and nodes");
    each_rank(of, machine, {.op = 0.02, .rank = 0.02, .node = 0.01}, "and of every op");
  }
  return 0;
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) { return isoscale::run(argc, argv); }
