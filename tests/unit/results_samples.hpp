// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "results/records/run_data.hpp"

/// A run with something in every field, made by hand.
namespace isoscale::results::samples {

inline program::Outline outline(int stage) {
  using program::OpKind;
  using program::Phase;
  const auto stage_extent = static_cast<std::uint32_t>(stage);
  return {.streams = {"compute", "dp", "pp_next"},
          .ops = {{.kind = OpKind::gemm,
                   .place = {.phase = Phase::backward, .layer = stage, .microbatch = 1},
                   .flop = 2e9 + stage,
                   .bytes = 3000,
                   .axes = {},
                   .gemm = {.m = 1000, .n = 500, .k = 400 + stage_extent, .batch = 5}},
                  {.kind = OpKind::all_reduce,
                   .stream = 1,
                   .place = {.phase = Phase::gradient_reduction},
                   .bytes = std::uint64_t{5} << 32U,
                   .axes = {mesh::Axis::dp},
                   .wait_count = 1},
                  {.kind = OpKind::exchange,
                   .stream = 2,
                   .place = {.phase = Phase::forward, .microbatch = 0},
                   .bytes = 78,
                   .axes = {mesh::Axis::pp},
                   .wait_begin = 1,
                   .wait_count = 1,
                   .transfer_count = 2}},
          .waits = {{.stream = 0, .count = 1}, {.stream = 1, .count = 1}},
          .transfers = {{.bytes = 77},
                        {.direction = program::Direction::receive, .offset = -1, .bytes = 78}}};
}

inline timeline::StepTrace trace(int rank, std::uint32_t step) {
  using units::Nanoseconds;
  const std::int64_t start = 9'000'000'000'000'000'001 + rank;  // beyond what a double holds
  return {.rank = rank,
          .step = step,
          .begin = Nanoseconds{start},
          .end = Nanoseconds{start + 100},
          .spans = {{.op = 0, .start = Nanoseconds{start + 1}, .end = Nanoseconds{start + 40}},
                    {.op = 1, .start = Nanoseconds{start + 40}, .end = Nanoseconds{start + 90}},
                    {.op = 2, .start = Nanoseconds{start + 50}, .end = Nanoseconds{start + 99}}}};
}

/// Rows of a point of 4 ranks: measured, failed with nothing, skipped.
inline std::vector<RowData> rows() {
  return {{.text = {{"op", "all_reduce"}, {"dtype", "f32"}, {"in_place", "yes"}},
           .number = {{"bytes", 1024}, {"count", 256}, {"root", -1}, {"estimate", 1e-6}},
           .calls = 100,
           .times = {{1e-3, 2e-3, 3e-3, 4e-3}, {5e-3, 6e-3, 7e-3, 8e-3}},
           .call_times = {1e-5, 2e-5, 3e-5},
           .wrong = 0},
          {.text = {{"op", "p2p"}, {"kind", "latency"}, {"class", "nvlink"}},
           .number = {{"src", 3}, {"dst", 1}, {"bytes", 8}, {"flop", 2}},
           .ranks = {3, 1},
           .times = {{1e-6, 2e-6}},
           .wrong = 5},
          {.text = {{"op", "p2p"}},
           .ranks = {0, 2},
           .status = PointStatus::failed,
           .reason = "rank 0 (node0) and rank 2 (node0) timed out"},
          {.status = PointStatus::skipped, .reason = "größer than memory"}};
}

/// A point of 4 ranks, dp=2 x pp=2, `steps` steps of about a millisecond.
inline PointData point(int index, int steps = 3) {
  PointData point{.index = index,
                  .workload = "hybrid",
                  .model = "tiny",
                  .dtype = "f32",
                  .mesh = {.dp = 2, .pp = 2},
                  .ranks = 4,
                  .nodes = 2,
                  .scaling = "strong",
                  .placement = "packed",
                  .options = {{"bucket", "25MiB"}, {"overlap", "on"}},
                  .model_shape = {{"hidden", "64"}},
                  .seed = 0xFFFF'FFFF'FFFF'FFFEU,
                  .labels = {"oversubscribed"},
                  .status = PointStatus::ok,
                  .verified = true,
                  .verification = "outputs within 1e-15 of one rank",
                  .throughput_unit = "tokens/s",
                  .work_per_step = 4096,
                  .flop_of_rank = {1e9, 2e9, 3e9, 4e9},
                  .memory_of_rank = {10, 20, 30, 40},
                  .host_memory_of_rank = {0, 5, 0, 5},
                  .peak_live_microbatches = {2, 2, 1, 1},
                  .world_rank = {0, 1, 4, 5},
                  .folded = true,
                  .folded_reason = "one core",
                  .graph = "on",
                  .gemm_choices = {{.shape = "f32 64x32x16",
                                    .algorithm = "00ff",
                                    .workspace = std::int64_t{3} << 32,
                                    .time = 1.5e-5,
                                    .candidates = 7,
                                    .arithmetic = "tensor cores, tf32 inputs, f32 sums"},
                                   {.shape = "bf16 8x8x8 T", .algorithm = "a0"}},
                  .communicators = {{.name = "dp", .ranks = 2, .creation = 0.5, .first_call = 0.25},
                                    {.name = "pp+", .ranks = 2, .creation = 1, .first_call = 2},
                                    {.name = "world", .ranks = 4, .creation = 3}},
                  .warm_up_steps = 1,
                  .stopped_because = "precision",
                  .warm_up_rule = "no change in the last 2 steps",
                  .looks = {.planned = 9, .made = 2, .growth = 1.5},
                  .injections = {"slow-rank=3:1.2", "clock=1:5ms"},
                  .outline = {.mesh = {.dp = 2, .pp = 2},
                              .outlines = {outline(0), outline(1)},
                              .outline_of_rank = {0, 0, 1, 1}},
                  .clock_offset = {0, 1e-6, -1e-6, 0},
                  .clock_error = {0, 1e-7, 1e-7, 0},
                  .clock_drift = {0, 1e-6, -2e-6, 0},
                  .solo_times = {{.rank = 3, .op = {units::Nanoseconds{5}, {}, {}}},
                                 {.rank = 0, .op = {units::Nanoseconds{7}, {}, {}}}},
                  .device_series = {{.rank = 2,
                                     .device = "gpu 0",
                                     .quantity = "power",
                                     .unit = "W",
                                     .time = {-0.5, 0, 1},
                                     .value = {100, 500, 700}},
                                    {.rank = 0, .device = "cpu", .quantity = "größe"}},
                  .measured_seconds = 0.25,
                  .soak = {.replays = 9, .seconds = 1.5, .differing = {"replay 3: rank 1 ..."}},
                  .rows = rows(),
                  .started = "2026-01-02T03:04:05Z",
                  .ended = "2026-01-02T03:04:06Z"};
  for (int step = 0; step < steps; ++step) {
    std::vector<double> times;
    for (int rank = 0; rank < point.ranks; ++rank)
      times.push_back(1e-3 + step * 1e-6 + rank * 1e-9);
    point.step_times.push_back(times);
    point.traced.push_back(step == 2 ? 1 : 0);
    point.dropped.push_back(step == 1 ? 1 : 0);
  }
  if (steps > 2) {
    point.op_sums = {{.step = 2,
                      .gemm = {1e-4, 2e-4, 3e-4, 4e-4},
                      .other_compute = {1e-5, 2e-5, 3e-5, 4e-5},
                      .copies = {0, 0, 1e-6, 0},
                      .communication = {5e-4, 6e-4, 7e-4, 8e-4}}};
    point.traces = {{.ranks = {trace(0, 2), trace(3, 2)}}, {.ranks = {trace(1, 2)}}};
  }
  return point;
}

/// A point that the plan left out.
inline PointData skipped_point(int index) {
  PointData point;
  point.index = index;
  point.workload = "tp";
  point.model = "tiny";
  point.dtype = "f32";
  point.ranks = 3;
  point.status = PointStatus::skipped;
  point.reason = "3 does not divide 8 heads";
  return point;
}

inline CalibrationData calibration() {
  return {.device = "host",
          .curves =
              {{.op = "all_reduce",
                .dtype = "f32",
                .link_class = "same node",
                .implementation = "library",
                .members = 4,
                .nodes = 1,
                .latency = Fitted{.value = 1e-6, .lower = 0.9e-6, .upper = 1.1e-6},
                .bandwidth = Fitted{.value = 5e9},
                .error = 0.07,
                .samples = {{.bytes = 8, .time = 1.1e-6, .fitted = 1e-6},
                            {.bytes = 1024, .time = 2e-6, .fitted = 2e-6, .held_out = -0.1},
                            {.bytes = 4096, .time = 3e-6, .fitted = 3e-6}}},
               {.op = "p2p", .link_class = "nvlink", .form = "linear", .labels = "oversubscribed"}},
          .growth = {{.op = "all_reduce",
                      .dtype = "f32",
                      .link_class = "same node",
                      .implementation = "library",
                      .members = {2, 4},
                      .latency = {1e-6, 2e-6},
                      .bandwidth = {5e9, 4e9},
                      .law = "log2 n",
                      .base = 1e-7,
                      .slope = 1e-6,
                      .bandwidth_factor = 0.8},
                     {.op = "barrier"}},
          .gemms = {{.dtype = "f32",
                     .cache = "cold",
                     .m = 64,
                     .n = 32,
                     .k = 16,
                     .batch = 2,
                     .rate = 1e9,
                     .labels = "shared-gpu",
                     .held_out = 0.25},
                    {.dtype = "f64"}},
          .ceilings = {{.dtype = "f32", .cache = "cold", .rate = 1e9, .m = 64, .error = 0.3},
                       {.dtype = "f64"}}};
}

inline PreflightData preflight() {
  return {.results = {{.name = "duplicate-gpu", .what = "8 GPUs of 2 nodes"},
                      {.name = "port-rate",
                       .verdict = results::Verdict::warning,
                       .host = "node1",
                       .device = "mlx5_0 port 1",
                       .what = "runs at 200 Gbit/s",
                       .cost = "half the bandwidth",
                       .fix = "reseat the cable"},
                      {.name = "build",
                       .verdict = results::Verdict::stop,
                       .what = "größer",
                       .allowed = true},
                      {.name = "xid", .verdict = results::Verdict::not_checked}},
          .facts = R"({"device":"host"})"};
}

inline RunData header() {
  RunData run{.id = "0123456789abcdef",
              .created = "2026-01-02T03:04:00Z",
              .isoscale_version = "0.1.0",
              .git_hash = "abc123",
              .compiler = "GNU 12.2.0",
              .build_type = "Release",
              .device = "host",
              .device_detail = "OpenBLAS, 1 thread",
              .mpi_library = "Open MPI v4.1.4",
              .command_line = "isoscale run --workload hybrid",
              .config_toml = "workload = \"hybrid\"\n# größer\n",
              .ranks = 6,
              .nodes = 2,
              .planned = 8,
              .complete = false,
              .warnings = {"the clock drifts"},
              .environment = {{"OMP_NUM_THREADS", "1"}, {"UCX_TLS", ""}}};
  for (int rank = 0; rank < run.ranks; ++rank) {
    RankFacts facts{.rank = rank,
                    .host = "node" + std::to_string(rank / 4),
                    .node = rank / 4,
                    .text = {{"cpu_model", "Some CPU"}},
                    .number = {{"bound_cores", 2}, {"memory_total", 1e12 + rank}}};
    if (rank == 0) facts.text["gpu_name"] = "Some GPU";
    if (rank == 0) facts.number.insert({{"gpu_sm_clock", 1e9}, {"gpu_power_limit", 700}});
    if (rank == 5) facts.text["cpu_quota"] = "2.0 CPUs";
    if (rank == 5) facts.number.erase("bound_cores");
    run.rank_facts.push_back(facts);
  }
  return run;
}

}  // namespace isoscale::results::samples
