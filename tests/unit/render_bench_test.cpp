// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/render/bench_tables.hpp"
#include "analysis/render/render.hpp"
#include "analysis/render/text.hpp"
#include "bench_samples.hpp"
#include "golden.hpp"
#include "report_samples.hpp"
#include "reported.hpp"

/// Reports of micro-benchmarks.
namespace isoscale::analysis {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

results::RunData bench_run() {
  results::RunData run = samples::run();
  run.command_line = "isoscale run --workload collectives,gemm,p2p,memory,overlap --ranks 4";
  run.points = {samples::collectives(0), samples::gemms(1), samples::pairs(2), samples::memory(3),
                samples::overlaps(4)};
  results::PointData skipped = samples::bench_point(5, "p2p", 1);
  skipped.status = results::PointStatus::skipped;
  skipped.reason = "one rank has no pair";
  run.points.push_back(skipped);
  return run;
}

TEST(RenderBench, ClaimsWhatTheGoldenOnesDo) {
  golden::expect_claims(rendered(bench_run(), render::render_text, "bench.h5"), "bench.txt");
  golden::expect_claims(rendered(bench_run(), render::render_markdown, "bench.h5"), "bench.md");
  golden::expect_claims(rendered(bench_run(), render::render_nccl_tests, "bench.h5"),
                        "bench.nccl-tests");
}

TEST(RenderBench, SaysWhichRowsOfTf32WereMultipliedWithoutIt) {
  results::RunData run = samples::run({samples::gemms(0)});
  for (results::RowData& row : run.points.front().rows) {
    row.text["dtype"] = "tf32";
    row.text["arithmetic"] = "tensor cores, tf32 inputs, f32 sums";
  }
  EXPECT_THAT(rendered(run, render::render_text), Not(HasSubstr("NO TF32")));
  run.points.front().rows.front().text["arithmetic"] = "FMA, f32 inputs, f32 sums";
  EXPECT_THAT(rendered(run, render::render_text),
              AllOf(HasSubstr("NO TF32"), HasSubstr("1 row multiplied with FMA")));
}

TEST(RenderBench, SaysNothingOfStepsThatThereAreNot) {
  for (const auto& render : {render::render_text, render::render_markdown}) {
    const std::string text = rendered(bench_run(), render);
    for (const char* const word : {"efficiency", "step time", "speed-up", "baseline", "nan"}) {
      EXPECT_THAT(text, Not(HasSubstr(word)));
    }
  }
  golden::expect_fits(rendered(bench_run(), render::render_text), 120);
}

TEST(RenderBench, SummarisesPairsOfMoreThan16Ranks) {
  results::RunData run = samples::run();
  results::PointData point = samples::bench_point(0, "p2p", 17);
  for (int src = 0; src < 17; ++src) {
    for (int dst = 0; dst < 17; ++dst) {
      if (src == dst) continue;
      const bool slow = src == 4 && dst == 16;
      auto row = samples::row({{"op", "p2p"}, {"kind", "bandwidth"}, {"class", "other node"}},
                              {{"src", src}, {"dst", dst}, {"bytes", 1e6}}, slow ? 1e-3 : 1e-4, 2);
      row.ranks = {src, dst};
      point.rows.push_back(row);
    }
  }
  run.points = {point};
  const std::string text = rendered(run, render::render_text);
  EXPECT_THAT(text, Not(HasSubstr("from (row) to (column)")));
  EXPECT_THAT(text, HasSubstr("other node    272"));
  EXPECT_THAT(text,
              HasSubstr("SLOW     rank 4 on node17 to rank 16 (other node): bandwidth 1 GB/s, "
                        "10.0% of its class's 10 GB/s"));
}

TEST(RenderBench, NamesPairsByTheirRanksInTheWorld) {
  results::RunData run = samples::run();
  results::PointData point = samples::bench_point(0, "p2p", 4);
  point.world_rank = {0, 2, 1, 3};
  auto row = samples::row({{"op", "p2p"}, {"kind", "bandwidth"}, {"class", "same node"}},
                          {{"src", 1}, {"dst", 3}, {"bytes", 1e6}}, 1e-4, 2);
  row.ranks = {1, 3};
  point.rows = {row};
  run.points = {point};
  const render::TitledTable matrix = [&] {
    const RunReport report = make_report(run, "a.h5", {});
    return as_text(render::pair_tables(report.benches.at(0)).at(0));
  }();
  ASSERT_EQ(matrix.rows.size(), 2U);
  EXPECT_EQ(matrix.rows[0].cells, (std::vector<std::string>{"2", "", "10.0"}));
  EXPECT_EQ(matrix.rows[1].cells[0], "3");
  const json found = json_of(run)["points"][0]["rows"];
  const auto pair =
      std::ranges::find_if(found, [](const json& at) { return at.contains("src_world_rank"); });
  ASSERT_NE(pair, found.end());
  expect_holds(*pair, {{"src", 1}, {"src_world_rank", 2}, {"dst_world_rank", 3}});
  const std::string csv = rendered(run, render::render_csv);
  EXPECT_THAT(csv, HasSubstr(",work_growth,src_world_rank,dst_world_rank\n"));
  EXPECT_THAT(csv, testing::EndsWith(",1,2,3\n"));
}

TEST(RenderBench, SaysHowCurvesDidAgainstTheirParts) {
  results::RunData run = samples::run();
  samples::add_dp_curve(run);
  results::PointData parts = samples::bench_point(9, "calibrate", 2);
  for (const double bytes : {8.0, 64.0, 512.0}) {
    parts.rows.push_back(samples::collective("all_reduce", bytes, 160e-9 * bytes / 64, 2));
  }
  parts.rows.push_back(samples::gemm("f32", "cold", 512, 100e9, 2));
  run.points.push_back(parts);
  const std::string text = rendered(run, render::render_text);
  EXPECT_THAT(text, HasSubstr("links    2 ranks: all_reduce on dp ran at 35.6% of what the link "
                              "gives alone"));
  EXPECT_THAT(text, HasSubstr("MFU      2 ranks: "));
  const json two = json_of(run)["points"][1];
  EXPECT_NEAR(two["mfu"].get<double>(), two["flops_per_rank"].get<double>() / 100e9, 1e-12);
  ASSERT_EQ(two["link_share"].size(), 1U);
  EXPECT_EQ(two["link_share"][0]["op"], "all_reduce");
  EXPECT_NEAR(two["link_share"][0]["share"].get<double>(), 160.0 / 450, 1e-6);
}

/// The lines of the report that are not remarks, cut at blanks.
std::vector<std::vector<std::string>> data_lines(const std::string& text) {
  std::vector<std::vector<std::string>> result;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words{line};
    result.emplace_back(std::istream_iterator<std::string>{words},
                        std::istream_iterator<std::string>{});
  }
  return result;
}

TEST(RenderNcclTests, HasItsColumnsInItsOrder) {
  const std::string text = rendered(bench_run(), render::render_nccl_tests);
  const auto lines = data_lines(text);
  ASSERT_EQ(lines.size(), 8U + 3 + 1 + 1);  // all_reduce, all_gather, barrier, sendrecv
  for (const auto& line : lines) EXPECT_EQ(line.size(), 13U);
  // size count type redop root | time algbw busbw #wrong, out of place and in place.
  double bytes = 8;
  for (std::size_t i = 0; i < 8; ++i, bytes *= 8) {
    const auto& line = lines[i];
    EXPECT_EQ(std::stod(line[0]), bytes);
    EXPECT_EQ(std::stod(line[1]), bytes / 4);
    EXPECT_EQ(line[2], "float");
    EXPECT_EQ(line[3], "sum");
    EXPECT_EQ(line[4], "-1");
    const double time = 2e-6 + bytes / 4e9;
    for (const std::size_t first : {5U, 9U}) {
      EXPECT_NEAR(std::stod(line[first]), time * 1e6, 0.006 + time * 1e2);
      EXPECT_NEAR(std::stod(line[first + 1]), bytes / time / 1e9, 0.006);
      EXPECT_NEAR(std::stod(line[first + 2]), 1.5 * bytes / time / 1e9, 0.006);
    }
    EXPECT_EQ(line[8], "0");
    EXPECT_EQ(line[12], i == 1 ? "7" : "0");
  }
  // all_gather counts per rank and sums nothing; it was not measured in place.
  EXPECT_EQ(lines[9][0], "8192");
  EXPECT_EQ(lines[9][1], "512");
  EXPECT_EQ(lines[9][3], "none");
  for (std::size_t column = 9; column < 13; ++column) EXPECT_EQ(lines[9][column], "N/A");
  EXPECT_EQ(lines[12][5], "N/A");  // failed
  EXPECT_THAT(text, AllOf(HasSubstr("# failed: rank 2 sent no answer in 5 s\n"),
                          HasSubstr("# Out of bounds values : 1 FAILED\n"),
                          HasSubstr("# Out of bounds values : 0 OK\n")));
  // The mean bus bandwidth of the sizes closes each table that has one: all_reduce and all_gather.
  const std::string closing = "\n# Avg bus bandwidth    : ";
  const std::size_t first = text.find(closing), second = text.find(closing, first + 1);
  ASSERT_NE(second, std::string::npos);
  EXPECT_EQ(text.find(closing, second + 1), std::string::npos);
  double sum = 0;
  for (std::size_t i = 8; i < 11; ++i) sum += std::stod(lines[i][7]);
  EXPECT_NEAR(std::stod(text.substr(second + closing.size())), sum / 3, 0.01);
}

TEST(RenderNcclTests, MakesATableOfEveryGroupAndImplementation) {
  results::RunData run = samples::run();
  results::PointData point = samples::bench_point(0, "collectives", 4);
  for (const char* implementation : {"library", "ring"}) {
    for (const char* dtype : {"bf16", "i32"}) {
      point.rows.push_back(samples::collective("all_reduce", 1024, 1e-6));
      point.rows.back().text["implementation"] = implementation;
      point.rows.back().text["dtype"] = dtype;
    }
  }
  run.points = {point};
  const std::string text = rendered(run, render::render_nccl_tests);
  EXPECT_THAT(text, AllOf(HasSubstr("all_reduce among 4 on world, library\n"),
                          HasSubstr("all_reduce among 4 on world, ring\n")));
  const auto lines = data_lines(text);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0][2], "bfloat16");
  EXPECT_EQ(lines[1][2], "int32");
  EXPECT_THAT(rendered(samples::two_curves(), render::render_nccl_tests),
              HasSubstr("# no collective was measured\n"));
}

TEST(RenderJson, HasTheRowsOfTheContract) {
  const json run = json_of(bench_run());
  const auto row = [&](int point, int index) { return run["points"][point]["rows"][index]; };
  const json reduce = row(0, 3);
  const double time = 2e-6 + 64 / 4e9;
  expect_holds(reduce, {{"op", "all_reduce"},
                        {"dtype", "f32"},
                        {"in_place", true},
                        {"bytes", 64},
                        {"count", 16},
                        {"wrong", 7},
                        {"time", {{"median", time}, {"p99", nullptr}}},
                        {"algbw", 64 / time},
                        {"busbw", 96 / time}});
  for (const char* key : {"median", "lower", "upper", "min", "p99"}) {
    EXPECT_TRUE(reduce["time"].contains(key)) << key;
    EXPECT_TRUE(row(0, 0)["time"][key].is_number()) << key;
  }
  expect_holds(run["points"][0]["rows"].back(),
               {{"status", "failed"}, {"algbw", nullptr}, {"time", {{"median", nullptr}}}});
  expect_holds(row(1, 4), {{"m", 2048},
                           {"n", 2048},
                           {"k", 2048},
                           {"batch", 1},
                           {"flops", 50e9},
                           {"of_ceiling", 50.0 / 60},  // a warm one is faster
                           {"of_peak", nullptr}});
  expect_holds(row(2, 1), {{"src", 0},  // after the bisection
                           {"dst", 1},
                           {"class", "same node"},
                           {"latency", 1.1e-6},
                           {"bandwidth", 5.01e9},
                           {"bidirectional", 8e9}});
  EXPECT_EQ(run["points"][2]["slow_pairs"].size(), 1U);
  expect_holds(row(3, 0), {{"kind", "copy"}, {"bytes", 48 << 20}, {"bandwidth", 12e9}});
  EXPECT_NEAR(row(4, 1)["hidden"].get<double>(), -0.5, 1e-9);
  EXPECT_EQ(run["points"][5]["rows"], json::array());
  EXPECT_EQ(run["calibration"]["curves"].size(), 4U);
  EXPECT_EQ(run["calibration"]["ceilings"][0]["flops"], 60e9);
}

TEST(RenderBench, SaysWhatGpusWereLikeWhereItIsKnown) {
  results::RunData run = bench_run();
  EXPECT_FALSE(json_of(run)["points"][1]["rows"][0].contains("sm_clock"));
  results::RowData& row = run.points[1].rows[0];
  row.number["sm_clock"] = 1980e6;
  row.number["sm_clock_min"] = 1410e6;
  row.number["throttle_reasons"] = 0x4;
  row.number["late_plays"] = 3;
  run.points[1].rows[1].number["sm_clock"] = 1755e6;
  expect_holds(
      json_of(run)["points"][1]["rows"][0],
      {{"sm_clock", 1980e6}, {"sm_clock_min", 1410e6}, {"throttle_reasons", 4}, {"late_plays", 3}});
  EXPECT_THAT(rendered(run, render::render_text),
              AllOf(HasSubstr("1755 to 1980 MHz"), HasSubstr("1 row: software power cap"),
                    HasSubstr("3 plays")));
}

TEST(RenderCsv, HasALineForEveryRow) {
  const results::RunData run = bench_run();
  std::istringstream lines{rendered(run, render::render_csv)};
  std::string line;
  std::getline(lines, line);
  std::vector<std::string> names;
  std::istringstream cells{line};
  for (std::string cell; std::getline(cells, cell, ',');) names.push_back(cell);
  std::size_t rows = 0, wanted = 1;  // the skipped point has one too
  for (const results::PointData& point : run.points) wanted += point.rows.size();
  std::map<std::string, std::string> second;
  while (std::getline(lines, line)) {
    if (++rows != 2) continue;
    std::size_t at = 0;
    // Only the point's reason and options could be quoted in this line, and they are empty.
    std::istringstream all{line + ","};  // the last one may be empty
    for (std::string cell; std::getline(all, cell, ',') && at < names.size(); ++at) {
      second[names[at]] = cell;
    }
  }
  EXPECT_EQ(rows, wanted);
  EXPECT_EQ(second.size(), names.size());  // no name twice
  EXPECT_EQ(second["op"], "all_reduce");
  EXPECT_EQ(second["in_place"], "yes");
  EXPECT_EQ(second["bytes"], "8");
  EXPECT_NEAR(std::stod(second["time_median"]), 2.002e-6, 1e-12);
  EXPECT_NEAR(std::stod(second["busbw"]), 12 / 2.002e-6, 1);
  EXPECT_EQ(second["step_time_median"], "");
}

TEST(RenderBench, LetsNoControlCharactersThrough) {
  results::RunData run = bench_run();
  for (results::PointData& point : run.points) {
    point.labels = {samples::hostile};
    for (results::RowData& row : point.rows) {
      for (auto& [key, value] : row.text) {
        if (key != "op" && key != "kind" && key != "part") value = samples::hostile;
      }
      row.text[samples::hostile] = samples::hostile;
      row.reason = samples::hostile;
    }
    point.rows.push_back({.text = {{"op", samples::hostile}}});
    point.rows.push_back(
        {.text = {{"op", "gemm"}}, .number = {{"m", 1e300}, {"bytes", -5}, {"flop", INFINITY}}});
  }
  for (const auto& render : {render::render_text, render::render_json, render::render_csv,
                             render::render_markdown, render::render_nccl_tests}) {
    golden::expect_harmless(rendered(run, render));
  }
  for (const auto& line : data_lines(rendered(run, render::render_nccl_tests)))
    EXPECT_EQ(line.size(), 13U);
  EXPECT_THAT(rendered(run, render::render_markdown), Not(HasSubstr("<b>")));
}

}  // namespace
}  // namespace isoscale::analysis
