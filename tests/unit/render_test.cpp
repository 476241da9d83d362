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
#include <string_view>
#include <vector>

#include "analysis/render/render.hpp"
#include "analysis/render/text.hpp"
#include "golden.hpp"
#include "report_samples.hpp"
#include "reported.hpp"

namespace isoscale::analysis {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

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
  const json document = json::parse(rendered(run, render::render_json));
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
  const json at = json_of(samples::two_curves());
  expect_holds(at, {{"id", "5f1c2a9e"}, {"status", "complete"}, {"ranks", 8}});
  EXPECT_EQ(at["system"]["ranks"][7]["text"]["cpu_model"], "AMD EPYC 7763 64-Core Processor");
  const json& two = at["points"][1];
  expect_holds(two, {{"index", 1},
                     {"mesh", {{"dp", 2}}},
                     {"options", {{"overlap", "on"}}},
                     {"status", "ok"},
                     {"reason", nullptr},
                     {"verified", true},
                     {"step_time", {{"steps", 20}, {"steps_per_block", 1}}},
                     {"throughput", {{"unit", "tokens/s"}}},
                     {"efficiency", 12.4 / 6.7 / 2},
                     {"breakdown", {{"compute", 820e-9}, {"transfer", 130e-9}}},
                     {"hidden_communication", 320e-9},
                     {"communication_ratio", 0.45},
                     {"instrumentation_overhead_interval", nullptr},  // one pair of blocks
                     {"flags", json::array()}});
  EXPECT_NEAR(two["step_time"]["median"].get<double>(), 6.7e-3, 1e-5);
  EXPECT_NEAR(two["instrumentation_overhead"].get<double>(), 0.02, 1e-3);
  expect_holds(at["points"][3], {{"status", "skipped"},
                                 {"reason", "batch 16 does not divide into 8 x 4"},
                                 {"verified", nullptr},
                                 {"step_time", {{"median", nullptr}, {"steps", 0}}},
                                 {"efficiency", nullptr},
                                 {"breakdown", {{"compute", nullptr}}}});
  EXPECT_EQ(at["points"][5]["verified"], false);
}

TEST(RenderJson, TellsTheRanksInTheWorldBesideThoseOfThePoint) {
  results::RunData run = samples::two_curves();
  run.points[2].world_rank = {0, 2, 1, 3};
  RunReport report = make_report(run, "a.h5", {});
  report.curves.at(0).points.at(2).causes.named = {
      {.kind = "slow rank", .ranks = {1, 3}, .size = 2, .text = ""}};
  const json document = json::parse(render::render_json({{&report, 1}}));
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
  const json document = json::parse(render::render_json({reports}));
  ASSERT_EQ(document["runs"].size(), 2U);
  EXPECT_EQ(document["runs"][1]["file"], "b.h5");
  EXPECT_EQ(json::parse(render::render_json(merge::Report{}))["runs"], json::array());
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
  const auto records = csv_records(rendered(run, render::render_csv));
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
  const auto rows = parse_csv(rendered(run, render::render_csv));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_THAT(rows[0], testing::IsSupersetOf({"run", "ranks", "efficiency", "wait", "reason"}));
  EXPECT_EQ(std::set<std::string>(rows[0].begin(), rows[0].end()).size(), rows[0].size());
}

TEST(RenderCsv, QuotesCellsAndMakesNoFormulas) {
  const results::RunData run = samples::hostile_run();
  const auto records = csv_records(rendered(run, render::render_csv, "-a.h5"));
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

TEST(Render, ClaimsWhatTheGoldenOnesDoAndFitsOn120Columns) {
  results::RunData run = samples::two_curves();
  const std::string file = "isoscale-dp-pp-node17-20250301T120007Z.h5";
  golden::expect_claims(rendered(run, render::render_text, file), "report.txt");
  const std::string markdown = rendered(run, render::render_markdown, file);
  golden::expect_claims(markdown, "report.md");
  EXPECT_THAT(markdown.substr(0, markdown.find('\n')),
              testing::AllOf(HasSubstr("92.5%"), HasSubstr("2 ranks"), HasSubstr("1 rank")));
  run.points[2].mesh = {.tp = 2, .dp = 2};
  golden::expect_fits(rendered(run, render::render_text), 120);
}

TEST(RenderText, SaysWhenARunIsPartialAndWhenItHasNoPoints) {
  results::RunData run = samples::run();
  run.complete = false;
  run.warnings = {"something is odd"};
  const std::string text = rendered(run, render::render_text);
  EXPECT_THAT(text, HasSubstr("PARTIAL"));
  EXPECT_THAT(text, HasSubstr("WARNING  something is odd"));
  EXPECT_THAT(text, HasSubstr("No point was measured."));
}

TEST(RenderText, SaysWhyThereIsNoInterval) {
  results::RunData run =
      samples::run({samples::measured(0, {}, 1), samples::measured(1, {.dp = 2}, 1),
                    samples::measured(2, {.dp = 4}, 1)});
  run.points[1].step_times.resize(7);  // two of them warm-up
  for (int i = 0; i < 60; ++i) run.points[2].step_times.emplace_back(4, 1.0 + i);
  const std::string text = rendered(run, render::render_text);
  EXPECT_THAT(text, HasSubstr("±95%     2 ranks: no interval: fewer than 6 steps count\n"));
  EXPECT_THAT(text, HasSubstr("±95%     4 ranks: no interval: the times of successive steps"));
}

TEST(RenderText, SaysWhatWasPutInOnPurpose) {
  results::RunData run = samples::run({samples::measured(0, {}, 1)});
  run.points[0].labels = {"injected"};
  run.points[0].injections = {"slow-rank=0:2", "jitter=5%"};
  EXPECT_THAT(rendered(run, render::render_text), HasSubstr("injected: slow-rank=0:2, jitter=5%"));
}

TEST(RenderText, DrawsSuperlinearEfficiencyPastTheIdeal) {
  results::RunData run =
      samples::run({samples::measured(0, {}, 1), samples::measured(1, {.dp = 2}, 0.45),
                    samples::measured(2, {.dp = 4}, 0.1)});
  const std::string text = rendered(run, render::render_text);
  EXPECT_THAT(text, HasSubstr("111.1%  ████████████████████│██▎\n"));
  EXPECT_THAT(text, HasSubstr("250.0%  ████████████████████│████>\n"));
}

TEST(Render, LetsNoControlCharactersThrough) {
  const results::RunData run = samples::hostile_run();
  for (const auto& render :
       {render::render_text, render::render_json, render::render_csv, render::render_markdown}) {
    golden::expect_harmless(rendered(run, render, samples::hostile));
  }
  EXPECT_THAT(rendered(run, render::render_text, samples::hostile),
              HasSubstr("\\x1b[2J\\x0d\\n\\x9b1m\\u202e\\xff"));
  EXPECT_THAT(rendered(run, render::render_markdown, samples::hostile), Not(HasSubstr("<b>")));
}

TEST(Escape, KeepsWhatIsHarmless) {
  EXPECT_EQ(render::escape("caf\u00e9 \u00b5s \u2014 100%"), "caf\u00e9 \u00b5s \u2014 100%");
  EXPECT_EQ(render::escape(std::string_view{"a\0b", 3}), "a\\x00b");
  EXPECT_EQ(render::escape("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(render::escape("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(render::escape("\xe2\x82"), "\\xe2\\x82") << "cut short";
  EXPECT_EQ(render::escape("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80") << "four bytes";
}

}  // namespace
}  // namespace isoscale::analysis
