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
#include "page_run_steps.hpp"
#include "preflight/check.hpp"
#include "results/writer/writer.hpp"
#include "tests/unit/bench_samples.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale {
namespace {

constexpr const char* host_prefix = "h100-";
constexpr int first_host = 3;  // with ten and more, names that do not sort as text

results::RunData header(int ranks, std::uint64_t seed) {
  results::RunData run{.id = fmt::format("{:016x}", 0x9a6e0000ULL + seed),
                       .created = fmt::format("2026-11-{:02}T09:00:00Z", 1 + seed % 28),
                       .ended = "",
                       .isoscale_version = "0.2.0",
                       .git_hash = "0123456789ab",
                       .compiler = "GNU 12.2.0",
                       .build_type = "Release",
                       .device = "cuda",
                       .device_detail = "NVIDIA H100 80GB HBM3, CUDA 12.6, NCCL 2.22 (simulated)",
                       .mpi_library = "Open MPI v4.1.4",
                       .command_line = "isoscale run --workload dp,tp,pp,hybrid --model gpt-6.7b",
                       .config_toml = "",
                       .ranks = ranks,
                       .nodes = (ranks + page_run::per_node - 1) / page_run::per_node,
                       .complete = true,
                       .warnings = {"simulated: no machine has measured this",
                                    "the clocks of h100-4 and h100-3 drift by 3 us a second"},
                       .environment = {{"NCCL_DEBUG", "WARN"}, {"OMP_NUM_THREADS", "8"}},
                       .rank_facts = {},
                       .points = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = rank / page_run::per_node, local = rank % page_run::per_node;
    run.rank_facts.push_back(
        {.rank = rank,
         .host = fmt::format("{}{}", host_prefix, first_host + node),
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

results::PreflightData preflight() {
  results::PreflightData made;
  for (const preflight::Check& check : preflight::all_checks()) {
    preflight::CheckResult result{.name = std::string{check.name},
                                  .what = std::string{check.about}};
    if (check.name == "port-rate") {
      result.verdict = preflight::Verdict::warning;
      result.host = fmt::format("{}{}", host_prefix, first_host + 1);
      result.device = "mlx5_3 port 1";
      result.what = "runs at 200 Gbit/s, all others at 400";
      result.cost = "half the bandwidth of one rail";
      result.fix = "reseat the cable";
    }
    made.results.push_back(std::move(result));
  }
  return made;
}

/// A curve to be measured.
struct Wanted {
  const char* workload;
  workloads::Scaling scaling;
  workloads::Options options;
};

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

results::PointData planned(int index, const Wanted& wanted, const workloads::Workload& workload,
                           const workloads::Request& base, int ranks) {
  results::PointData point;
  point.index = index;
  point.workload = wanted.workload;
  point.model = base.model.name;
  point.dtype = "bf16";
  for (const auto& [axis, extent] : workload.natural_mesh(ranks)) {
    int mesh::Shape::*const member = axis == mesh::Axis::tp   ? &mesh::Shape::tp
                                     : axis == mesh::Axis::pp ? &mesh::Shape::pp
                                                              : &mesh::Shape::dp;
    point.mesh.*member = extent;
  }
  point.ranks = ranks;
  point.nodes = (ranks + page_run::per_node - 1) / page_run::per_node;
  point.scaling = workloads::name(wanted.scaling);
  point.placement = "packed";
  point.throughput_unit = workload.throughput_unit;
  point.stopped_because = "precision";
  for (int rank = 0; rank < ranks; ++rank) point.world_rank.push_back(rank);
  return point;
}

results::PointData measured(int index, const Wanted& wanted, int ranks, std::mt19937_64& random) {
  const workloads::Workload& workload = workloads::find_workload(wanted.workload);
  const workloads::Request base{.model = workloads::load_model("gpt-6.7b"),
                                .precision = program::Precision::bf16,
                                .options = wanted.options};
  results::PointData point = planned(index, wanted, workload, base, ranks);
  const auto broken = mesh::violation(point.mesh, workload.limits(base, wanted.scaling));
  if (broken) {
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
  point.clock_error.assign(static_cast<std::size_t>(ranks), ranks > page_run::per_node ? 2e-6 : 0);
  point.verified = true;
  point.verification = "outputs within 1e-3 of one rank";
  point.communicator_creation = 0.02 * ranks;
  if (ranks > 1) {
    point.communicators = {
        {.name = "world", .ranks = ranks, .creation = 0.02 * ranks, .first_call = 0.4}};
  }
  page_run::add_steps(point, random);
  page_run::add_devices(point, random);
  return point;
}

results::PointData collectives(int index, int ranks) {
  results::PointData point = samples::bench_point(index, "collectives", ranks);
  const double rate = ranks > page_run::per_node ? 44e9 : 370e9;
  const double latency = ranks > page_run::per_node ? 32e-6 : 11e-6;
  for (const char* const op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    const double factor = std::string_view{op} == "all_reduce" ? 2 : 1;
    for (double bytes = 8; bytes <= 256 * samples::mib; bytes *= 2) {
      point.rows.push_back(samples::collective(op, bytes, latency + factor * bytes / rate, ranks));
      point.rows.back().text["class"] = ranks > page_run::per_node ? "several nodes" : "one node";
    }
  }
  return point;
}

/// All pairs; what leaves rank 11 for other nodes is slow.
results::PointData pairs(int index, int ranks) {
  results::PointData point = samples::bench_point(index, "p2p", ranks);
  constexpr int slow = 11;
  const auto add = [&](const char* kind, int src, int dst, double bytes, double time) {
    const bool is_near = src / page_run::per_node == dst / page_run::per_node;
    const bool is_rail = src % page_run::per_node == dst % page_run::per_node;
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
      const bool is_near = src / page_run::per_node == dst / page_run::per_node;
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
  results::RunData run = header(ranks, seed);
  run.preflight = preflight();
  results::RunWriter writer{file, run, settings::IfExists::overwrite};
  int index = 0;
  const std::vector<Wanted> wanted = curves();
  for (std::size_t curve = 0; curve < wanted.size(); curve += every) {
    for (int count = 1; count <= ranks; count *= 2) {
      writer.commit(measured(index++, wanted[curve], count, random));
    }
  }
  for (int count = 2; count <= ranks; count *= 4) writer.commit(collectives(index++, count));
  writer.commit(pairs(index++, ranks));
  writer.commit(gemms(index++, std::min(ranks, page_run::per_node)));
  writer.commit(memory(index++, std::min(ranks, page_run::per_node)));
  writer.commit(samples::overlaps(index++));
  run.ended = run.created;
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
