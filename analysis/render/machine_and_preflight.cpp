// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/machine_and_preflight.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/record_json.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/text.hpp"
#include "results/records/point_facts.hpp"
#include "results/records/run_and_calibration_fields.hpp"

namespace isoscale::analysis::render {
namespace {

using results::CheckResult;
using results::Verdict;

constexpr std::string_view checks_schema_version = "1.0";

/// Returns a text about a check's result: host, device and finding, as "c1, GPU 3: what was found";
/// parts that are "" are left out.
std::string subject(const CheckResult& result) {
  std::vector<std::string> parts{escape(result.host), escape(result.device)};
  std::erase(parts, "");
  const std::string where = base::listed(parts);
  return where.empty() ? escape(result.what) : fmt::format("{}: {}", where, escape(result.what));
}

std::string lines_of(const CheckResult& result, std::size_t width) {
  const std::string verdict =
      std::string{results::name(result.verdict)} + (result.allowed ? " (allowed)" : "");
  const std::size_t verdict_width = std::string_view{"stop (allowed)"}.size();
  std::string text = fmt::format("  {:<{}}  {:<{}}  {}\n", verdict, verdict_width, result.name,
                                 width, subject(result));
  const auto more = [&](std::string_view key, const std::string& value) {
    if (value.empty()) return;
    text +=
        fmt::format("  {:<{}}  {:<{}}  {}: {}\n", "", verdict_width, "", width, key, escape(value));
  };
  more("cost", result.cost);
  more("fix", result.fix);
  return text;
}

/// Lists the checks whose result is not_checked, grouped by reason, since on most machines many
/// have the same reason.
std::string render_not_checked(std::span<const CheckResult> results) {
  // The indent and the width, in characters, of lines with names of checks.
  constexpr std::size_t indent = 4, most_columns = 110;
  std::vector<const CheckResult*> not_checked = pointers_to(results);
  std::erase_if(not_checked, [](auto* at) { return at->verdict != Verdict::not_checked; });
  std::string text;
  for (const auto& [why, checks] : grouped(not_checked, subject)) {
    std::vector<std::string> names;
    for (const CheckResult* const check : checks) names.push_back(escape(check->name));
    text += fmt::format("  not checked: {}\n", why) +
            in_lines(base::listed(names), indent, most_columns);
  }
  return text;
}

constexpr std::size_t most_warnings = 1000;  // limit on the shown warnings of a run

/// Describes a node from the facts of one of its ranks.
std::string node_text(const results::RankFacts& facts) {
  const std::string quota = escape(text_of(facts, "cpu_quota"));
  const auto cores = facts.number.find("cores"), memory = facts.number.find("memory_total");
  const auto unknown = facts.number.end();
  const auto cores_text = [](double count) {
    return fmt::format("{} {}", value_text(count, Unit::count), count == 1 ? "core" : "cores");
  };
  std::vector<std::string> parts{escape(text_of(facts, "cpu_model")),
                                 cores == unknown ? "" : cores_text(cores->second),
                                 memory == unknown ? "" : value_text(memory->second, Unit::bytes),
                                 quota.empty() ? "" : "limited to " + quota};
  std::erase(parts, "");
  return base::listed(parts);
}

void add(Facts& facts, const std::string& key, std::vector<std::string> values) {
  std::erase(values, "");
  std::ranges::transform(values, values.begin(), escape);
  if (!values.empty()) facts.emplace_back(key, base::listed(values));
}

// The most warnings about devices that are shown for a point; a run of many ranks has many devices.
constexpr std::size_t most_device_warnings = 4;

using devices::DeviceState;

constexpr Metric<DeviceState> device_metrics[] = {
    {"energy_of", "", Unit::text, plain<&DeviceState::energy, &devices::Energy::of>},
    {"power", "power", Unit::watts, member<&DeviceState::energy, &devices::Energy::power>},
    {"energy", "energy", Unit::joules, member<&DeviceState::energy, &devices::Energy::joules>},
    {"energy_per_step", "energy/step", Unit::joules,
     member<&DeviceState::energy, &devices::Energy::joules_per_step>},
    {"energy_per_token", "energy/token", Unit::joules,
     member<&DeviceState::energy, &devices::Energy::joules_per_token>},
    {"energy_missing", "", Unit::text, member<&DeviceState::energy, &devices::Energy::missing>},
    {"clock", "clock", Unit::hertz, member<&DeviceState::clock>},
    {"clock_min", "lowest", Unit::hertz, member<&DeviceState::clock_min>},
    {"temperature_max", "hottest", Unit::kelvin, member<&DeviceState::temperature>},
    {"utilisation", "busy", Unit::share, member<&DeviceState::utilisation>},
    {"warnings", "", Unit::text, plain<&DeviceState::warnings>},
};

}  // namespace

std::string count_checks(const results::PreflightData& preflight) {
  std::vector<std::string> parts;
  for (const Verdict verdict : results::all_verdicts) {
    const auto count = std::ranges::count(preflight.results, verdict, &CheckResult::verdict);
    const bool takes_s = count > 1 && verdict >= Verdict::warning;
    if (count > 0) {
      parts.push_back(fmt::format("{} {}{}", count, results::name(verdict), takes_s ? "s" : ""));
    }
  }
  return base::listed(parts);
}

std::string render_checks_text(const results::PreflightData& preflight) {
  std::vector<CheckResult> results = preflight.results;
  std::ranges::stable_sort(results, std::ranges::greater{}, &CheckResult::verdict);
  std::size_t width = 0;
  for (const CheckResult& result : results) {
    if (result.verdict != Verdict::not_checked) width = std::max(width, result.name.size());
  }
  std::string text = fmt::format("Preflight: {}\n", count_checks(preflight));
  for (const CheckResult& result : results) {
    if (result.verdict != Verdict::not_checked) text += lines_of(result, width);
  }
  return text + render_not_checked(results);
}

Facts check_facts(const results::PreflightData& preflight) {
  Facts facts{{"preflight", count_checks(preflight)}};
  for (const CheckResult& result : preflight.results) {
    if (result.verdict >= Verdict::warning) {
      facts.emplace_back("PREFLIGHT", escape(results::to_sentence(result)));
    }
  }
  return facts;
}

Json checks_json(const results::PreflightData& preflight) {
  // The facts of a job are nested only a few levels deep. Deeper nesting means that the file is
  // damaged, and might exhaust the stack.
  constexpr int deepest = 16;
  bool is_too_deep = false;
  const auto judge = [&](int depth, Json::parse_event_t, const Json&) {
    is_too_deep = is_too_deep || depth > deepest;
    return depth <= deepest;
  };
  Json facts = Json::parse(preflight.facts, judge, /*allow_exceptions=*/false);
  const bool is_damaged = facts.is_discarded() || is_too_deep;
  return {
      {"results", list_json(preflight.results, [](auto& result) { return record_json(result); })},
      {"facts", is_damaged ? Json{} : std::move(facts)}};
}

std::string render_checks_json(const results::PreflightData& preflight) {
  Json document{{"schema_version", checks_schema_version}};
  document.update(checks_json(preflight));
  return dumped(document);
}

std::string machine_text(const results::RunData& run) {
  std::set<std::string> hosts, kinds;
  for (const results::RankFacts& facts : run.rank_facts) {
    hosts.insert(escape(facts.host));
    kinds.insert(node_text(facts));
  }
  std::string text =
      fmt::format("{} on {}", base::counted(run.ranks, "rank"), base::counted(run.nodes, "node"));
  std::vector<std::string> in_order{hosts.begin(), hosts.end()};
  std::ranges::sort(in_order, before_naturally);
  if (!hosts.empty()) text += fmt::format(" ({})", base::listed(in_order, 3));
  kinds.erase("");
  if (kinds.size() == 1) text += ": " + *kinds.begin();
  if (kinds.size() > 1) text += fmt::format(": {} kinds of node", kinds.size());
  return text;
}

std::string headline(const RunReport& report) {
  const results::RunData& run = *report.data;
  return fmt::format("Isoscale {}, run {} of {}", escape(run.isoscale_version), escape(run.id),
                     escape(run.created));
}

std::string partial_text(const results::RunData& run) {
  if (run.planned <= 0) return "the run did not finish";
  return fmt::format("the run did not finish: it has {} of its {} points", run.points.size(),
                     run.planned);
}

Facts header(const RunReport& report, const Sections& sections) {
  const results::RunData& run = *report.data;
  Facts facts;
  if (!run.complete) facts.emplace_back("PARTIAL", partial_text(run));
  facts.emplace_back("machine", machine_text(run));
  add(facts, "device", {run.device, run.device_detail});
  // Only the name before the first comma is shown; the run file has the MPI library's full text.
  add(facts, "MPI", {run.mpi_library.substr(0, run.mpi_library.find(','))});
  add(facts, "build",
      {run.compiler, run.build_type, run.git_hash.empty() ? "" : "git " + run.git_hash});
  add(facts, "command", {run.command_line});
  add(facts, "file", {report.file});
  if (sections.has(Section::warnings)) {
    for (std::size_t i = 0; i < std::min(run.warnings.size(), most_warnings); ++i) {
      add(facts, "WARNING", {run.warnings[i]});
    }
    if (run.warnings.size() > most_warnings) {
      facts.emplace_back("WARNING", fmt::format("and {} more: --format json",
                                                run.warnings.size() - most_warnings));
    }
  }
  if (run.preflight && sections.has(Section::preflight)) append(facts, check_facts(*run.preflight));
  return facts;
}

DocumentTable device_table(const Curve& curve) {
  std::vector<const DeviceState*> states;
  std::vector<Value> ranks;
  std::string device;  // the first point's; all points of a run use one kind of device
  for (const PointReport& point : curve.points) {
    const DeviceState& at = point.devices;
    if (device.empty()) device = at.energy.of;
    if (!at.clock && !at.temperature && !at.utilisation && !at.energy.power) continue;
    states.push_back(&at);
    ranks.push_back(Json(point.data->ranks));
  }
  DocumentTable table = table_of<DeviceState>(
      device_metrics, states,
      "ranks clock clock_min utilisation temperature_max power energy_per_step energy_per_token",
      {{{"ranks", "ranks", Unit::count}, std::move(ranks)}});
  if (!device.empty()) table.title = device + " beside the loop";
  return table;
}

Facts device_remarks(const Curve& curve) {
  Facts facts;
  std::vector<std::string> missing;
  for (const PointReport& point : curve.points) {
    const std::vector<std::string>& warnings = point.devices.warnings;
    const std::string ranks = base::counted(point.data->ranks, "rank");
    for (std::size_t i = 0; i < std::min(warnings.size(), most_device_warnings); ++i) {
      facts.emplace_back("WARNING", fmt::format("{}: {}", ranks, escape(warnings[i])));
    }
    if (warnings.size() > most_device_warnings) {
      facts.emplace_back("WARNING", fmt::format("{}: {} more about devices", ranks,
                                                warnings.size() - most_device_warnings));
    }
    const std::string& why = point.devices.energy.missing;
    if (!why.empty() && std::ranges::find(missing, why) == missing.end()) missing.push_back(why);
  }
  for (const std::string& why : missing) facts.emplace_back("energy", "none: " + why);
  return facts;
}

Json device_state_json(const PointReport& point) {
  const DeviceState& state = point.devices;
  if (state.series.empty() && state.warnings.empty()) return {};
  Json object = object_of<DeviceState>(device_metrics, state);
  object["series"] = list_json(state.series, [&](const devices::SeriesSummary& at) {
    const results::DeviceSeries& data = *at.data;
    return Json{{"rank", data.rank},
                {"world_rank", world_rank(*point.data, data.rank)},
                {"device", data.device},
                {"quantity", data.quantity},
                {"unit", data.unit},
                {"min", number_or_null(at.minimum)},
                {"median", number_or_null(at.median)},
                {"max", number_or_null(at.maximum)},
                {"first", data.value.front()},
                {"last", data.value.back()},
                {"samples", data.value.size()}};
  });
  return object;
}

}  // namespace isoscale::analysis::render
