// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Writes a run file for looking at pages: ten curves up to 64 ranks on nodes of eight GPUs with
// traces and samples of devices, micro-benchmarks, a rank that gets too hot, a slow link, a warning
// of preflight. All of it is simulated. Usage: make_page_run FILE [RANKS] [SEED] [EVERY]
// EVERY = 4: only each fourth curve, for a page that is drawn fast.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "mesh/mesh_request.hpp"
#include "program/outline.hpp"
#include "results/writer/writer.hpp"
#include "simulate/simulate.hpp"
#include "tests/unit/bench_samples.hpp"
#include "tests/unit/results_samples.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale {
namespace {

constexpr int per_node = 8;
constexpr int slow_rank = 21;  ///< of the world; its GPU gets too hot halfway through a loop
constexpr double slow_factor = 1.22;
constexpr int warm_up = 12, untraced = 20, traced = 4, blocks = 8;
constexpr std::size_t kept_traces = 3;
constexpr int device_samples = 300;  // of each quantity of a GPU

/// A point to be made.
struct Wanted {
  const char* workload;
  workloads::Scaling scaling = workloads::Scaling::strong;
  workloads::Options options{};
  mesh::Shape mesh{};
};

/// Returns whether a group along `axes` has members on several nodes, with ranks packed.
bool leaves_node(const mesh::Shape& shape, mesh::AxisSet axes) {
  return std::ranges::any_of(mesh::all_axes, [&](mesh::Axis axis) {
    return axes.contains(axis) && mesh::stride(shape, axis) * shape[axis] > per_node;
  });
}

/// Seconds of one op; of communication from the last arrival on.
double cost(const program::OutlineOp& op, const mesh::Shape& shape, double slowness) {
  const auto bytes = static_cast<double>(op.bytes);
  if (op.kind == program::OpKind::gemm) {
    constexpr double peak = 620e12, half_rate_at = 4e9;  // FLOP/s, FLOP
    return 4e-6 + (op.flop + half_rate_at) / peak * slowness;
  }
  if (!program::communicates(op.kind)) return 3e-6 + bytes / 2.4e12 * slowness;
  const int members = mesh::group_size(shape, op.axes);
  if (members < 2) return 1e-6;
  const bool far = leaves_node(shape, op.axes);
  const double moved = op.kind == program::OpKind::all_reduce ? 2.0 * (members - 1) / members : 1.0;
  return (far ? 24e-6 : 9e-6) * std::log2(members + 1) + bytes * moved / (far ? 46e9 : 360e9);
}

enum class Heat : std::uint8_t { cool, hot };

/// One step in the steady state, its begin on rank 0's clock at `begin`.
timeline::Timeline simulated(const results::PointData& point, Heat heat, units::Nanoseconds begin,
                             std::mt19937_64& random) {
  std::exponential_distribution<double> noise{1 / 0.015};
  simulate::Costs costs;
  for (int rank = 0; rank < point.ranks; ++rank) {
    const bool is_slow =
        heat == Heat::hot && point.world_rank[static_cast<std::size_t>(rank)] == slow_rank;
    const double slowness = (is_slow ? slow_factor : 1) * (1 + 0.002 * (rank % 5));
    costs.table_of_rank.push_back(static_cast<std::uint32_t>(rank));
    auto& table = costs.tables.emplace_back();
    for (const program::OutlineOp& op : point.outline.of(rank).ops) {
      const double seconds = cost(op, point.mesh, slowness) * (1 + noise(random));
      table.push_back(units::to_nanoseconds(units::Seconds{seconds}));
    }
  }
  timeline::Timeline step =
      std::move(simulate::simulate(point.outline, costs, {.plays = 2}).back());
  const units::Nanoseconds shift = begin - step.ranks.front().begin;
  for (timeline::StepTrace& rank : step.ranks) {
    rank.begin += shift;
    rank.end += shift;
    for (timeline::Span& span : rank.spans) {
      span.start += shift;
      span.end += shift;
    }
  }
  return step;
}

std::vector<double> lengths(const timeline::Timeline& step) {
  std::vector<double> seconds;
  for (const timeline::StepTrace& rank : step.ranks) {
    seconds.push_back(units::to_seconds(rank.end - rank.begin).value());
  }
  return seconds;
}

/// Steps around those of two simulated ones: warm-up, then blocks of untraced and traced steps; the
/// slow rank is hot from the middle on. The last traced steps keep their spans.
void add_steps(results::PointData& point, std::mt19937_64& random) {
  std::normal_distribution<double> noise{0, 0.004};
  std::uniform_int_distribution<int> one_in{0, 79};
  const std::vector<double> cool = lengths(simulated(point, Heat::cool, {}, random));
  const std::vector<double> hot = lengths(simulated(point, Heat::hot, {}, random));
  const int steps = warm_up + blocks * (untraced + traced);
  for (int i = 0; i < steps; ++i) {
    const int in_block = (i - warm_up) % (untraced + traced);
    const bool is_traced = i >= warm_up && in_block >= untraced;
    double factor = 1 + noise(random) + (is_traced ? 0.006 : 0);
    if (i < warm_up) factor += 0.8 / (1 + i);
    if (one_in(random) == 0) factor += 0.15;  // somebody else's traffic
    std::vector<double> times = i < steps / 2 ? cool : hot;
    for (double& time : times) time *= factor * (1 + 0.1 * noise(random));
    point.step_times.push_back(std::move(times));
    point.traced.push_back(is_traced ? 1 : 0);
    point.dropped.push_back(i >= warm_up && (in_block == 0 || in_block == untraced) ? 1 : 0);
  }
  point.warm_up_steps = warm_up;
  units::Nanoseconds begin{1'000'000'000};
  for (std::size_t i = point.step_times.size() - kept_traces; i < point.step_times.size(); ++i) {
    timeline::Timeline step = simulated(point, Heat::hot, begin, random);
    begin = step.ranks.front().end;
    for (timeline::StepTrace& rank : step.ranks) rank.step = static_cast<std::uint32_t>(i);
    point.step_times[i] = lengths(step);
    point.traces.push_back(std::move(step));
  }
  double seconds = 0;
  for (const auto& times : point.step_times) seconds += *std::ranges::max_element(times);
  point.measured_seconds = seconds;
}

/// Clock, power, temperature, utilisation and reasons to slow down of every rank's GPU.
void add_devices(results::PointData& point, std::mt19937_64& random) {
  constexpr double thermal_slowdown = 64;  // nvmlClocksEventReasonHwThermalSlowdown
  std::normal_distribution<double> noise{0, 1};
  for (int rank = 0; rank < point.ranks; ++rank) {
    const int world = point.world_rank[static_cast<std::size_t>(rank)];
    const auto series = [&](const char* quantity, const char* unit) {
      return results::DeviceSeries{.rank = rank,
                                   .device = "gpu " + std::to_string(world % per_node),
                                   .quantity = quantity,
                                   .unit = unit};
    };
    auto clock = series("sm_clock", "Hz"), power = series("power", "W");
    auto temperature = series("temperature", "K"), busy = series("utilisation", "1");
    auto reasons = series("throttle_reasons", "1");
    for (int i = 0; i < device_samples; ++i) {
      const double at = i / (device_samples - 1.0);
      const bool is_hot = world == slow_rank && at > 0.5;
      const auto add = [&](results::DeviceSeries& to, double value) {
        to.time.push_back(at * *point.measured_seconds);
        to.value.push_back(value);
      };
      add(clock, is_hot ? 1.56e9 + 15e6 * std::round(2 * noise(random)) : 1.98e9);
      add(power, (is_hot ? 560 : 660) + 12 * noise(random) - 200 * std::exp(-40 * at));
      add(temperature,
          273.15 + std::round(45 + (world == slow_rank ? 44 : 21) * (1 - std::exp(-8 * at)) +
                              world % 4));
      add(busy, std::min(1.0, 0.97 + 0.02 * noise(random)));
      add(reasons, is_hot ? thermal_slowdown : 0);
    }
    for (auto* const made : {&clock, &power, &temperature, &busy, &reasons}) {
      point.device_series.push_back(std::move(*made));
    }
  }
}

/// A whole point; skipped where the workload does not fit its mesh.
results::PointData measured(int index, const Wanted& wanted, std::mt19937_64& random) {
  const workloads::Workload& workload = workloads::find_workload(wanted.workload);
  const workloads::Request base{.model = workloads::load_model("gpt-6.7b"),
                                .precision = program::Precision::bf16,
                                .options = wanted.options};
  const int ranks = wanted.mesh.size();
  results::PointData point;
  point.index = index;
  point.workload = wanted.workload;
  point.model = base.model.name;
  point.dtype = "bf16";
  point.mesh = wanted.mesh;
  point.ranks = ranks;
  point.nodes = (ranks + per_node - 1) / per_node;
  point.scaling = workloads::name(wanted.scaling);
  point.placement = "packed";
  point.throughput_unit = workload.throughput_unit;
  point.stopped_because = "precision";
  for (int rank = 0; rank < ranks; ++rank) point.world_rank.push_back(rank);
  if (const auto broken = mesh::violation(point.mesh, workload.limits(base, wanted.scaling))) {
    point.status = results::PointStatus::skipped;
    point.reason = *broken;
    point.options.insert(wanted.options.begin(), wanted.options.end());
    return point;
  }
  const workloads::Request request = workload.scale(base, point.mesh, wanted.scaling);
  point.options.insert(request.options.begin(), request.options.end());
  point.model_shape = {{"layers", std::to_string(request.model.layers)},
                       {"heads", std::to_string(request.model.heads)},
                       {"ffn", std::to_string(request.model.ffn)}};
  point.work_per_step = workload.work_per_step(request);
  point.outline = program::outline(workload.build(request), program::Section::step);
  for (int rank = 0; rank < ranks; ++rank) {
    double flop = 0;
    for (const program::OutlineOp& op : point.outline.of(rank).ops) flop += op.flop;
    point.flop_of_rank.push_back(flop);
    point.memory_of_rank.push_back(31e9 + 0.2e9 * (rank % 3));
  }
  point.clock_offset.assign(static_cast<std::size_t>(ranks), 0);
  point.clock_error.assign(static_cast<std::size_t>(ranks), ranks > per_node ? 2e-6 : 0);
  point.verified = true;
  point.verification = "outputs within 1e-3 of one rank";
  point.communicator_creation = 0.02 * ranks;
  if (ranks > 1) {
    point.communicators = {
        {.name = "world", .ranks = ranks, .creation = 0.02 * ranks, .first_call = 0.4}};
  }
  add_steps(point, random);
  add_devices(point, random);
  return point;
}

/// With ten and more, names do not sort as text.
std::string host_of(int node) { return fmt::format("h100-{}", 3 + node); }

/// A run of GPUs without its points.
results::RunData header(int ranks, std::string id, const std::string& created) {
  results::RunData run = results::samples::header();
  run.id = std::move(id);
  run.created = run.ended = created;
  run.device = "cuda";
  run.device_detail = "NVIDIA H100 80GB HBM3, CUDA 12.6, NCCL 2.22 (simulated)";
  run.ranks = ranks;
  run.nodes = (ranks + per_node - 1) / per_node;
  run.complete = true;
  run.warnings = {"simulated: no machine has measured this",
                  "the clocks of h100-4 and h100-3 drift by 3 us a second"};
  run.rank_facts.clear();
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = rank / per_node, local = rank % per_node;
    run.rank_facts.push_back(
        {.rank = rank,
         .host = host_of(node),
         .node = node,
         .text = {{"cpu_model", "Intel(R) Xeon(R) Platinum 8480C"},
                  {"os", "Linux 5.15.0"},
                  {"device", "NVIDIA H100 80GB HBM3"},
                  {"gpu_name", "NVIDIA H100 80GB HBM3"},
                  {"gpu_driver", "550.90.07"},
                  {"gpu_uuid", fmt::format("GPU-{:08x}-0000-4000-8000-{:012x}", rank * 7919, rank)},
                  {"gpu_pci", fmt::format("00000000:{:02x}:00.0", 0x1b + 0x11 * local)},
                  {"bound_cpus", fmt::format("{},{},{},{}", 4 * local, 4 * local + 1, 4 * local + 2,
                                             4 * local + 3)}},
         .number = {{"cores", 112},
                    {"sockets", 2},
                    {"numa_nodes", 2},
                    {"bound_cores", 4},
                    {"memory_total", 2.16e12},
                    {"gpu_memory_total", 85.5e9},
                    {"gpu_power_limit", 700},
                    {"gpu_sm_clock_max", 1.98e9}}});
  }
  return run;
}

std::vector<Wanted> curves() {
  std::vector<Wanted> wanted;
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

/// All pairs; what leaves rank 11 for other nodes is slow.
results::PointData pairs(int index, int ranks) {
  results::PointData point = samples::bench_point(index, "p2p", ranks);
  constexpr int slow = 11;
  const auto add = [&](const char* kind, int src, int dst, double bytes, double time) {
    const bool is_near = src / per_node == dst / per_node;
    const bool is_rail = src % per_node == dst % per_node;
    const char* const link = is_near   ? "same node, NVLink"
                             : is_rail ? "other node, same rail"
                                       : "other node";
    point.rows.push_back(samples::pair_row(kind, src, dst, bytes, time, link));
  };
  for (int src = 0; src < ranks; ++src) {
    for (int dst = 0; dst < ranks; ++dst) {
      if (src == dst) continue;
      const bool is_near = src / per_node == dst / per_node;
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

void write(const char* file, int ranks, std::uint64_t seed, std::size_t every) {
  std::mt19937_64 random{seed};
  results::RunData run = header(ranks, fmt::format("{:016x}", 0x9a6e0000ULL + seed),
                                fmt::format("2026-11-{:02}T09:00:00Z", 1 + seed % 28));
  run.preflight = results::samples::preflight();
  run.preflight->results[2].what = "isoscale was built as 'Debug'";
  results::RunWriter writer{file, run, settings::IfExists::overwrite};
  int index = 0;
  std::vector<Wanted> wanted = curves();
  for (std::size_t curve = 0; curve < wanted.size(); curve += every) {
    for (int count = 1; count <= ranks; count *= 2) {
      wanted[curve].mesh = natural_mesh(wanted[curve].workload, count);
      writer.commit(measured(index++, wanted[curve], random));
    }
  }
  for (int count = 2; count <= ranks; count *= 4) {
    writer.commit(samples::collectives(index++, count));
  }
  writer.commit(pairs(index++, ranks));
  writer.commit(samples::gemms(index++, std::min(ranks, per_node)));
  writer.commit(samples::memory(index++));
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
