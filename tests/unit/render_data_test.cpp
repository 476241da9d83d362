// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/render/render.hpp"
#include "report_samples.hpp"

namespace isoscale::analysis {
namespace {

using nlohmann::json;

std::set<std::string> keys(const json& object) {
  std::set<std::string> result;
  for (const auto& [key, value] : object.items()) result.insert(key);
  return result;
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream words{text};
  return {std::istream_iterator<std::string>{words}, std::istream_iterator<std::string>{}};
}

constexpr const char* point_keys =
    "index workload model dtype mesh ranks nodes ranks_per_node axes scaling "
    "placement options labels status reason verified step_time throughput speedup "
    "efficiency flop_per_step flops_per_rank mfu memory_per_rank "
    "device_memory_per_rank host_memory_per_rank samples_per_second work_growth "
    "traced_step breakdown op_time hidden_communication communication_ratio "
    "instrumentation_overhead instrumentation_overhead_interval flags device_state "
    "graph soak communicators link_share rows slow_pairs breakdown_by "
    "breakdown_missing unaccounted largest_unexplained wait_causes clock_error "
    "traced_steps schedule_bubble pipeline traced_gemms hidden_copies utilisation "
    "breakdown_of_rank speedup_interval efficiency_interval pop waterfall "
    "serial_fraction findings injections";

/// The contract of the JSON report, key by key, for points of every status.
TEST(RenderJson, HasEveryKeyOfTheContract) {
  using Keys = std::set<std::string>;
  const results::RunData run = samples::two_curves();
  const RunReport report = make_report(run, "a.h5", {});
  const json document = json::parse(render_json({{&report, 1}}));
  EXPECT_EQ(keys(document),
            (Keys{"schema_version", "runs", "curves", "findings", "findings_left_out", "warnings",
                  "index_only", "index", "machines", "unreadable"}));
  EXPECT_TRUE(document["schema_version"].is_string());
  const json& at = document["runs"].at(0);
  EXPECT_EQ(keys(at), (Keys{"id", "file", "created", "isoscale_version", "device", "ranks", "nodes",
                            "status", "warnings", "system", "preflight", "points", "curves",
                            "findings", "findings_left_out", "calibration"}));
  EXPECT_TRUE(at["system"].is_object());
  EXPECT_EQ(at["calibration"], json::object());
  EXPECT_EQ(at["points"].size(), 6U);
  for (const json& point : at["points"]) {
    EXPECT_EQ(keys(point), words_of(point_keys));
    EXPECT_EQ(keys(point["mesh"]), (Keys{"dp", "tp", "pp", "cp", "ep"}));
    EXPECT_EQ(keys(point["step_time"]),
              (Keys{"median", "lower", "upper", "min", "max", "steps", "steps_per_block"}));
    EXPECT_EQ(keys(point["throughput"]), (Keys{"value", "unit"}));
    EXPECT_EQ(keys(point["breakdown"]),
              (Keys{"compute", "copies", "transfer", "wait", "bubble", "gap", "other"}));
    EXPECT_TRUE(point["mfu"].is_null());
    EXPECT_EQ(point["rows"], json::array());
  }
}

TEST(RenderJson, GivesPlainNumbersAndNullForWhatIsUnknown) {
  const results::RunData run = samples::two_curves();
  const RunReport report = make_report(run, "a.h5", {});
  const json document = json::parse(render_json({{&report, 1}}));
  const json& at = document["runs"][0];
  EXPECT_EQ(at["id"], "5f1c2a9e");
  EXPECT_EQ(at["status"], "complete");
  EXPECT_EQ(at["ranks"], 8);
  EXPECT_EQ(at["system"]["ranks"][7]["text"]["cpu_model"], "AMD EPYC 7763 64-Core Processor");

  const json& two = at["points"][1];
  EXPECT_EQ(two["index"], 1);
  EXPECT_EQ(two["mesh"]["dp"], 2);
  EXPECT_EQ(two["options"]["overlap"], "on");
  EXPECT_EQ(two["status"], "ok");
  EXPECT_TRUE(two["reason"].is_null());
  EXPECT_EQ(two["verified"], true);
  EXPECT_NEAR(two["step_time"]["median"].get<double>(), 6.7e-3, 1e-5);
  EXPECT_EQ(two["step_time"]["steps"], 20);
  EXPECT_EQ(two["step_time"]["steps_per_block"], 1);
  EXPECT_EQ(two["throughput"]["unit"], "tokens/s");
  EXPECT_NEAR(two["efficiency"].get<double>(), 12.4 / 6.7 / 2, 1e-12);
  EXPECT_NEAR(two["breakdown"]["compute"].get<double>(), 820e-9, 1e-15);
  EXPECT_NEAR(two["breakdown"]["transfer"].get<double>(), 130e-9, 1e-15);
  EXPECT_NEAR(two["hidden_communication"].get<double>(), 320e-9, 1e-15);
  EXPECT_NEAR(two["communication_ratio"].get<double>(), 0.45, 1e-12);
  EXPECT_NEAR(two["instrumentation_overhead"].get<double>(), 0.02, 1e-3);
  EXPECT_TRUE(two["instrumentation_overhead_interval"].is_null()) << "one pair of blocks";
  EXPECT_EQ(two["flags"], json::array());

  const json& skipped = at["points"][3];
  EXPECT_EQ(skipped["status"], "skipped");
  EXPECT_EQ(skipped["reason"], "batch 16 does not divide into 8 x 4");
  EXPECT_TRUE(skipped["verified"].is_null());
  EXPECT_TRUE(skipped["step_time"]["median"].is_null());
  EXPECT_EQ(skipped["step_time"]["steps"], 0);
  EXPECT_TRUE(skipped["efficiency"].is_null());
  EXPECT_TRUE(skipped["breakdown"]["compute"].is_null());
  EXPECT_EQ(at["points"][5]["verified"], false);
}

TEST(RenderJson, TellsTheRanksInTheWorldBesideThoseOfThePoint) {
  results::RunData run = samples::two_curves();
  run.points[2].world_rank = {0, 2, 1, 3};
  RunReport report = make_report(run, "a.h5", {});
  report.curves.at(0).points.at(2).causes.named = {
      {.kind = "slow rank", .ranks = {1, 3}, .size = 2, .text = ""}};
  const json document = json::parse(render_json({{&report, 1}}));
  const json& causes = document["runs"][0]["points"][2];
  const json& of_rank = causes["breakdown_of_rank"];
  ASSERT_EQ(of_rank.size(), 4U);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(of_rank[rank]["rank"], rank);
    EXPECT_EQ(of_rank[rank]["world_rank"], run.points[2].world_rank[rank]);
  }
  EXPECT_EQ(causes["findings"][0]["ranks"], (json{1, 3}));
  EXPECT_EQ(causes["findings"][0]["world_ranks"], (json{2, 3}));
}

TEST(RenderJson, JoinsRuns) {
  const results::RunData run = samples::two_curves();
  const std::vector reports{make_report(run, "a.h5", {}), make_report(run, "b.h5", {})};
  const json document = json::parse(render_json({reports}));
  ASSERT_EQ(document["runs"].size(), 2U);
  EXPECT_EQ(document["runs"][1]["file"], "b.h5");
  EXPECT_EQ(json::parse(render_json(Report{}))["runs"], json::array());
}

/// A reader of RFC 4180 written from its grammar.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows{{""}};
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (inside) {
      if (text[i] != '"') {
        rows.back().back() += text[i];
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        rows.back().back() += text[++i];
      } else {
        inside = false;
      }
    } else if (text[i] == '"') {
      EXPECT_EQ(rows.back().back(), "") << "a quote inside a cell that is not quoted";
      inside = true;
    } else if (text[i] == ',') {
      rows.back().emplace_back();
    } else if (text[i] == '\n') {
      rows.push_back({""});
    } else {
      rows.back().back() += text[i];
    }
  }
  EXPECT_EQ(rows.back(), std::vector<std::string>{""}) << "the last line does not end";
  rows.pop_back();
  return rows;
}

std::vector<std::map<std::string, std::string>> csv_records(const std::string& text) {
  const auto rows = parse_csv(text);
  std::vector<std::map<std::string, std::string>> records;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].size(), rows[0].size()) << "row " << i;
    for (std::size_t j = 0; j < std::min(rows[i].size(), rows[0].size()); ++j) {
      if (j == 0) records.emplace_back();
      records.back()[rows[0][j]] = rows[i][j];
    }
  }
  return records;
}

TEST(RenderCsv, HasOneRecordPerPoint) {
  const results::RunData run = samples::two_curves();
  const RunReport report = make_report(run, "a.h5", {});
  const auto records = csv_records(render_csv({{&report, 1}}));
  ASSERT_EQ(records.size(), 6U);
  EXPECT_EQ(records[2].at("ranks"), "4");
  EXPECT_EQ(records[2].at("dp"), "4");
  EXPECT_EQ(records[2].at("labels"), "oversubscribed");
  EXPECT_EQ(records[2].at("verified"), "true");
  EXPECT_EQ(records[2].at("options"), "batch=16;microbatch=2;overlap=on");
  EXPECT_NEAR(std::stod(records[1].at("efficiency")), 12.4 / 6.7 / 2, 1e-12);
  EXPECT_NEAR(std::stod(records[1].at("transfer")), 130e-9, 1e-15);
  EXPECT_EQ(records[3].at("status"), "skipped");
  EXPECT_EQ(records[3].at("step_time_median"), "");
  EXPECT_EQ(records[3].at("mfu"), "");
}

TEST(RenderCsv, HasAHeadingWithoutPoints) {
  const results::RunData run = samples::run();
  const RunReport report = make_report(run, "a.h5", {});
  const auto rows = parse_csv(render_csv({{&report, 1}}));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_THAT(rows[0], testing::IsSupersetOf({"run", "ranks", "efficiency", "wait", "reason"}));
  EXPECT_EQ(std::set<std::string>(rows[0].begin(), rows[0].end()).size(), rows[0].size());
}

TEST(RenderCsv, QuotesCellsAndMakesNoFormulas) {
  const results::RunData run = samples::hostile_run();
  const RunReport report = make_report(run, "-a.h5", {});
  const auto records = csv_records(render_csv({{&report, 1}}));
  ASSERT_EQ(records.size(), 6U);
  EXPECT_EQ(records[0].at("model"), "'=cmd|\"x\",\\x1b[2J\\x0d\\n\\x9b1m\\u202e\\xff<b>|`");
  for (const auto& record : records) {
    EXPECT_EQ(record.at("file"), "'-a.h5");
    for (const auto& [key, cell] : record) {
      EXPECT_FALSE(cell.starts_with('=')) << key;
      EXPECT_FALSE(cell.starts_with('+')) << key;
      EXPECT_FALSE(cell.starts_with('@')) << key;
    }
  }
}

}  // namespace
}  // namespace isoscale::analysis
