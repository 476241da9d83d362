// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/text_escape.hpp"
#include "report_samples.hpp"

namespace isoscale::analysis {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

results::RunData sample_run() {
  results::RunData run = samples::run();
  samples::add_dp_curve(run);
  samples::add_pp_curve(run);
  return run;
}

/// The golden file `name`, which tests/golden/README.md says how to renew.
std::string golden(const std::string& name) {
  std::ifstream file{std::string{ISOSCALE_GOLDEN} + "/" + name};
  EXPECT_TRUE(file) << "cannot read the golden file " << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void expect_golden(const std::string& actual, const std::string& name) {
  if (actual == golden(name)) return;
  const std::string copy = testing::TempDir() + name;
  std::ofstream{copy} << actual;
  ADD_FAILURE() << "differs from tests/golden/" << name << "; what was rendered is in " << copy
                << ":\n"
                << actual;
}

TEST(RenderText, IsTheGoldenOne) {
  const results::RunData run = sample_run();
  const RunReport report = make_report(run, "isoscale-dp-pp-node17-20250301T120007Z.h5", {});
  expect_golden(render_text({&report, 1}), "report.txt");
}

TEST(RenderMarkdown, IsTheGoldenOne) {
  const results::RunData run = sample_run();
  const RunReport report = make_report(run, "isoscale-dp-pp-node17-20250301T120007Z.h5", {});
  expect_golden(render_markdown({&report, 1}), "report.md");
}

TEST(RenderText, FitsOn120Columns) {
  results::RunData run = sample_run();
  run.points[2].mesh = {.tp = 2, .dp = 2};
  const RunReport report = make_report(run, "a.h5", {});
  std::istringstream lines{render_text({&report, 1})};
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(display_width(line), 120U) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << "blanks at the end of: " << line;
  }
}

TEST(RenderText, SaysWhenARunIsPartialAndWhenItHasNoPoints) {
  results::RunData run = samples::run();
  run.complete = false;
  run.warnings = {"something is odd"};
  const RunReport report = make_report(run, "a.h5", {});
  const std::string text = render_text({&report, 1});
  EXPECT_THAT(text, HasSubstr("PARTIAL"));
  EXPECT_THAT(text, HasSubstr("WARNING  something is odd"));
  EXPECT_THAT(text, HasSubstr("No point was measured."));
}

TEST(RenderText, DrawsSuperlinearEfficiencyPastTheIdeal) {
  results::RunData run = samples::run();
  run.points = {samples::measured(0, {}, 1), samples::measured(1, {.dp = 2}, 0.45),
                samples::measured(2, {.dp = 4}, 0.1)};
  const RunReport report = make_report(run, "a.h5", {});
  const std::string text = render_text({&report, 1});
  EXPECT_THAT(text, HasSubstr("111.1%  ████████████████████│██▎\n"));
  EXPECT_THAT(text, HasSubstr("250.0%  ████████████████████│████>\n"));
}

/// What a hostile run file could hold in any field of text.
const std::string hostile =
    "=cmd|\"x\",\x1b[2J\r\n\xc2\x9b"
    "1m\xe2\x80\xae\xff<b>|`";

results::RunData hostile_run() {
  results::RunData run = sample_run();
  for (std::string* const text :
       {&run.id, &run.created, &run.isoscale_version, &run.git_hash, &run.compiler, &run.build_type,
        &run.device, &run.device_detail, &run.mpi_library, &run.command_line}) {
    *text = hostile;
  }
  run.warnings = {hostile};
  run.environment = {{hostile, hostile}};
  run.rank_facts = {{.rank = 0,
                     .host = hostile,
                     .node = 0,
                     .text = {{"cpu_model", hostile}, {"cpu_quota", hostile}, {hostile, hostile}},
                     .number = {{hostile, 1}}}};
  for (results::PointData& point : run.points) {
    for (std::string* const text :
         {&point.workload, &point.model, &point.dtype, &point.scaling, &point.placement,
          &point.reason, &point.verification, &point.throughput_unit, &point.folded_reason}) {
      *text = hostile;
    }
    point.options = {{hostile, hostile}};
    point.labels = {hostile};
    point.folded = true;
  }
  return run;
}

TEST(Render, LetsNoControlCharactersThrough) {
  const results::RunData run = hostile_run();
  const RunReport report = make_report(run, hostile, {});
  for (const auto& render : {render_text, render_json, render_csv, render_markdown}) {
    const std::string text = render({&report, 1});
    for (const char* const bad : {"\x1b", "\r", "\xc2\x9b", "\xe2\x80\xae", "\xff"}) {
      EXPECT_THAT(text, Not(HasSubstr(bad)));
    }
  }
  EXPECT_THAT(render_text({&report, 1}), HasSubstr("\\x1b[2J\\x0d\\n\\x9b1m\\u202e\\xff"));
  EXPECT_THAT(render_markdown({&report, 1}), Not(HasSubstr("<b>")));
}

TEST(Escape, KeepsWhatIsHarmless) {
  EXPECT_EQ(escape("caf\u00e9 \u00b5s \u2014 100%"), "caf\u00e9 \u00b5s \u2014 100%");
  EXPECT_EQ(escape(std::string_view{"a\0b", 3}), "a\\x00b");
  EXPECT_EQ(escape("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(escape("\xe2\x82"), "\\xe2\\x82") << "cut short";
  EXPECT_EQ(escape("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80") << "four bytes";
}

std::set<std::string> keys(const json& object) {
  std::set<std::string> result;
  for (const auto& [key, value] : object.items()) result.insert(key);
  return result;
}

/// The contract of the JSON report, key by key, for points of every status.
TEST(RenderJson, HasEveryKeyOfTheContract) {
  using Keys = std::set<std::string>;
  const results::RunData run = sample_run();
  const RunReport report = make_report(run, "a.h5", {});
  const json document = json::parse(render_json({&report, 1}));
  EXPECT_EQ(keys(document), (Keys{"schema_version", "runs"}));
  EXPECT_TRUE(document["schema_version"].is_string());
  const json& at = document["runs"].at(0);
  EXPECT_EQ(keys(at), (Keys{"id", "file", "created", "isoscale_version", "device", "ranks", "nodes",
                            "status", "warnings", "system", "points", "calibration"}));
  EXPECT_TRUE(at["system"].is_object());
  EXPECT_EQ(at["calibration"], json::object());
  EXPECT_EQ(at["points"].size(), 6U);
  for (const json& point : at["points"]) {
    EXPECT_EQ(keys(point), (Keys{"index",
                                 "workload",
                                 "model",
                                 "dtype",
                                 "mesh",
                                 "ranks",
                                 "nodes",
                                 "scaling",
                                 "placement",
                                 "options",
                                 "labels",
                                 "status",
                                 "reason",
                                 "verified",
                                 "step_time",
                                 "throughput",
                                 "speedup",
                                 "efficiency",
                                 "flop_per_step",
                                 "flops_per_rank",
                                 "mfu",
                                 "memory_per_rank",
                                 "traced_step",
                                 "breakdown",
                                 "hidden_communication",
                                 "communication_ratio",
                                 "instrumentation_overhead",
                                 "rows"}));
    EXPECT_EQ(keys(point["mesh"]), (Keys{"dp", "tp", "pp", "cp", "ep"}));
    EXPECT_EQ(keys(point["step_time"]), (Keys{"median", "lower", "upper", "min", "max", "steps"}));
    EXPECT_EQ(keys(point["throughput"]), (Keys{"value", "unit"}));
    EXPECT_EQ(keys(point["breakdown"]),
              (Keys{"compute", "copies", "transfer", "wait", "bubble", "gap", "other"}));
    EXPECT_TRUE(point["mfu"].is_null());
    EXPECT_EQ(point["rows"], json::array());
  }
}

TEST(RenderJson, GivesPlainNumbersAndNullForWhatIsUnknown) {
  const results::RunData run = sample_run();
  const RunReport report = make_report(run, "a.h5", {});
  const json document = json::parse(render_json({&report, 1}));
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
  EXPECT_EQ(two["throughput"]["unit"], "tokens/s");
  EXPECT_NEAR(two["efficiency"].get<double>(), 12.4 / 6.7 / 2, 1e-12);
  EXPECT_NEAR(two["breakdown"]["compute"].get<double>(), 820e-9, 1e-15);
  EXPECT_NEAR(two["breakdown"]["transfer"].get<double>(), 130e-9, 1e-15);
  EXPECT_NEAR(two["hidden_communication"].get<double>(), 320e-9, 1e-15);
  EXPECT_NEAR(two["communication_ratio"].get<double>(), 0.45, 1e-12);
  EXPECT_NEAR(two["instrumentation_overhead"].get<double>(), 0.02, 1e-3);

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

TEST(RenderJson, JoinsRuns) {
  const results::RunData run = sample_run();
  const std::vector reports{make_report(run, "a.h5", {}), make_report(run, "b.h5", {})};
  const json document = json::parse(render_json(reports));
  ASSERT_EQ(document["runs"].size(), 2U);
  EXPECT_EQ(document["runs"][1]["file"], "b.h5");
  EXPECT_EQ(json::parse(render_json({}))["runs"], json::array());
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
  const results::RunData run = sample_run();
  const RunReport report = make_report(run, "a.h5", {});
  const auto records = csv_records(render_csv({&report, 1}));
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
  const auto rows = parse_csv(render_csv({&report, 1}));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_THAT(rows[0], testing::IsSupersetOf({"run", "ranks", "efficiency", "wait", "reason"}));
  EXPECT_EQ(std::set<std::string>(rows[0].begin(), rows[0].end()).size(), rows[0].size());
}

TEST(RenderCsv, QuotesCellsAndMakesNoFormulas) {
  const results::RunData run = hostile_run();
  const RunReport report = make_report(run, "-a.h5", {});
  const auto records = csv_records(render_csv({&report, 1}));
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
