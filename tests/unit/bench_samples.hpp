// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "results/records/run_data.hpp"

/// Hand-made points of micro-benchmarks. A call's median time is exactly the one that is given.
namespace isoscale::samples {

using Texts = std::map<std::string, std::string>;
using Numbers = std::map<std::string, double>;

constexpr double kib = 1024, mib = 1024 * kib;

/// NVIDIA/dgxc-benchmarking, nccl/README.md: all_reduce on 8 H100, bytes and microseconds.
constexpr std::array<std::pair<double, double>, 23> eight_h100{{
    {8, 13.67},      {128, 15.87},     {1024, 16.94},   {8192, 17.40},   {32768, 19.33},
    {65536, 19.54},  {262144, 20.43},  {524288, 20.66}, {0x1p20, 27.37}, {0x1p21, 42.21},
    {0x1p22, 54.19}, {0x1p23, 83.04},  {0x1p24, 123.8}, {0x1p25, 199.3}, {0x1p26, 324.7},
    {0x1p27, 586.4}, {0x1p28, 1112.5}, {0x1p29, 2151},  {0x1p30, 4029},  {0x1p31, 7939},
    {0x1p32, 15749}, {0x1p33, 31307},  {0x1p34, 62648},
}};

/// A row of `ranks` ranks: 11 plays of 10 calls, 1% around `time`; the last rank is the slowest,
/// the others take half as long.
inline results::RowData row(Texts text, Numbers number, double time, int ranks = 4) {
  results::RowData made{.text = std::move(text), .number = std::move(number)};
  made.calls = 10;
  for (int play = 0; play < 11; ++play) {
    const double off = 0.002 * ((play * 4) % 11 - 5);
    std::vector<double> of_rank(static_cast<std::size_t>(ranks), time * 5);
    of_rank.back() = time * 10 * (1 + off);
    made.times.push_back(of_rank);
  }
  return made;
}

inline results::RowData excused(results::RowData row, results::PointStatus status,
                                std::string reason) {
  row.times.clear();
  row.status = status;
  row.reason = std::move(reason);
  return row;
}

/// A point of `ranks` ranks along dp on one node, that is ok and has nothing measured yet.
inline results::PointData bench_point(int index, const char* workload, int ranks) {
  results::PointData point;
  point.index = index;
  point.workload = workload;
  point.dtype = "f32";
  point.mesh = {.dp = ranks};
  point.ranks = ranks;
  point.nodes = 1;
  point.scaling = "strong";
  point.placement = "packed";
  point.verified = true;
  return point;
}

inline results::RowData collective(const char* op, double bytes, double time, int members = 4,
                                   const char* in_place = "no") {
  const bool reduces = std::string{op}.find("reduce") != std::string::npos;
  results::RowData made =
      row({{"op", op},
           {"dtype", "f32"},
           {"reduction", reduces ? "sum" : "none"},
           {"in_place", in_place},
           {"implementation", "library"},
           {"axis", "world"},
           {"groups", "all"},
           {"class", "same node"}},
          {{"bytes", bytes},
           {"count", std::string{op} == "all_gather" ? bytes / 4 / members : bytes / 4},
           {"root", -1},
           {"members", members}},
          time, members);
  made.wrong = 0;
  return made;
}

/// 2 us + bytes / 4 GB/s for all_reduce, in place and not; some others.
inline results::PointData collectives(int index, int ranks = 4) {
  results::PointData point = bench_point(index, "collectives", ranks);
  point.communicator_creation = 3e-3;
  point.communicators = {{.name = "dp", .ranks = ranks, .creation = 2e-3, .first_call = 0.25}};
  for (double bytes = 8; bytes <= 16 * mib; bytes *= 8) {
    for (const char* in_place : {"no", "yes"}) {
      point.rows.push_back(collective("all_reduce", bytes, 2e-6 + bytes / 4e9, ranks, in_place));
    }
  }
  for (int i = 0; i < 200; ++i) point.rows[0].call_times.push_back(2e-6 + i * 1e-9);
  point.rows[0].number["first_call"] = 1.5e-3;
  point.rows[3].wrong = 7;
  point.rows[3].status = results::PointStatus::failed;
  point.rows[3].reason = "7 wrong elements";
  for (double bytes = 64; bytes <= mib; bytes *= 128) {
    point.rows.push_back(collective("all_gather", bytes, 1e-6 + bytes / 8e9, ranks));
  }
  point.rows.push_back(collective("barrier", 0, 3e-6, ranks));
  point.rows.back().wrong.reset();
  point.rows.push_back(excused(collective("sendrecv", 1024, 1, ranks), results::PointStatus::failed,
                               "rank 2 sent no answer in 5 s"));
  return point;
}

inline results::RowData gemm(const char* dtype, const char* cache, double size, double rate,
                             int ranks = 4) {
  const double flop = 2 * size * size * size;
  return row({{"op", "gemm"}, {"dtype", dtype}, {"cache", cache}, {"origin", "powers"}},
             {{"m", size}, {"n", size}, {"k", size}, {"batch", 1}, {"flop", flop}}, flop / rate,
             ranks);
}

inline results::PointData gemms(int index, int ranks = 4) {
  results::PointData point = bench_point(index, "gemm", ranks);
  for (const auto& [size, rate] : {std::pair{128.0, 10e9}, {512.0, 40e9}, {2048.0, 50e9}}) {
    point.rows.push_back(gemm("f32", "cold", size, rate, ranks));
    point.rows.push_back(gemm("f32", "warm", size, rate * 1.2, ranks));
  }
  point.rows.push_back(gemm("f64", "warm", 512, 20e9, ranks));
  return point;
}

/// A row of what two ranks send each other.
inline results::RowData pair_row(const char* kind, int src, int dst, double bytes, double time,
                                 const char* link_class = "same node") {
  results::RowData made = row({{"op", "p2p"}, {"kind", kind}, {"class", link_class}},
                              {{"src", src}, {"dst", dst}, {"bytes", bytes}}, time, 2);
  made.ranks = {src, dst};
  return made;
}

/// A point with the bandwidth of all pairs, both ways; time(src, dst) is of `bytes`.
template <class Time>
results::PointData all_pairs(int ranks, double bytes, const Time& time, const char* link_class) {
  results::PointData point = bench_point(0, "p2p", ranks);
  for (int src = 0; src < ranks; ++src) {
    for (int dst = 0; dst < ranks; ++dst) {
      if (src == dst) continue;
      point.rows.push_back(pair_row("bandwidth", src, dst, bytes, time(src, dst), link_class));
    }
  }
  return point;
}

/// All pairs of 4 ranks at about 5 GB/s, but 1 to 2 at 2 GB/s; 3 to 0 failed.
inline results::PointData pairs(int index) {
  results::PointData point = bench_point(index, "p2p", 4);
  const auto add = [&](const char* kind, int src, int dst, double bytes, double time) {
    point.rows.push_back(pair_row(kind, src, dst, bytes, time));
  };
  for (int src = 0; src < 4; ++src) {
    for (int dst = 0; dst < 4; ++dst) {
      if (src == dst) continue;
      if (src < dst) add("latency", src, dst, 8, (1 + 0.1 * (dst - src)) * 1e-6);
      const double speed = src == 1 && dst == 2 ? 2e9 : 5e9 + 1e7 * (src + dst);
      add("bandwidth", src, dst, 4 * mib, 4 * mib / speed);
      if (src == 3 && dst == 0) {
        point.rows.back() = excused(point.rows.back(), results::PointStatus::failed,
                                    "rank 3 (node17) to rank 0 (node17) took longer than 5 s");
      }
      if (src < dst) add("bidirectional", src, dst, 8 * mib, 8 * mib / 8e9);
    }
  }
  point.rows.push_back(row({{"op", "p2p"}, {"kind", "bisection"}, {"class", "same node"}},
                           {{"bytes", 8 * mib}}, 8 * mib / 6e9, 4));
  return point;
}

inline results::PointData memory(int index) {
  results::PointData point = bench_point(index, "memory", 4);
  for (const char* together : {"one", "all"}) {
    const double speed = std::string{together} == "one" ? 12e9 : 7e9;
    for (const char* kind : {"copy", "triad"}) {
      point.rows.push_back(row({{"op", "memory"}, {"kind", kind}, {"together", together}},
                               {{"bytes", 48 * mib}, {"numa", 0}}, 48 * mib / speed));
    }
  }
  return point;
}

/// The first is hidden by half; the second takes longer together than one after the other.
inline results::PointData overlaps(int index) {
  results::PointData point = bench_point(index, "overlap", 4);
  point.folded = true;
  point.folded_reason = "one core";
  const auto add = [&](const char* pair, const char* part, double time) {
    point.rows.push_back(row({{"op", "overlap"},
                              {"pair", pair},
                              {"part", part},
                              {"collective", "all_reduce"},
                              {"dtype", "f32"}},
                             {{"bytes", mib}, {"m", 512}, {"n", 512}, {"k", 256}}, time));
  };
  add("0", "gemm", 4e-3);
  add("0", "collective", 2e-3);
  add("0", "together", 5e-3);
  add("0", "gemm together", 5e-3);
  add("0", "collective together", 3e-3);
  add("0", "gemm traced", 4e-3);
  add("0", "collective traced", 2e-3);
  add("1", "gemm", 4e-3);
  add("1", "collective", 1e-3);
  add("1", "together", 5.5e-3);
  return point;
}

/// Adds the two rows of a batch size of inference; `tpot` is of one token, of 16 in a play's pass.
inline void add_batch(results::PointData& point, double batch, double ttft, double tpot,
                      std::size_t plays = 11) {
  for (const bool decodes : {false, true}) {
    results::RowData& added = point.rows.emplace_back(
        row({{"op", "infer"}, {"part", decodes ? "decode" : "prefill"}, {"dtype", "f32"}},
            {{"batch", batch},
             {"prompt", 32},
             {"output", 64},
             {"replicas", point.mesh.dp},
             {"cache_bytes", batch * 1000},
             {"flop", 3e9}},
            decodes ? tpot : ttft, point.ranks));
    added.times.resize(plays);
  }
}

}  // namespace isoscale::samples
