// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "analysis/render/json_values.hpp"
#include "analysis/render/text_escape.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;
using preflight::CheckResult;
using preflight::Verdict;

constexpr std::string_view checks_schema_version = "1.0";

/// "c1, GPU 3: what", without what there is not.
std::string subject(const CheckResult& result) {
  std::vector<std::string> parts;
  for (const std::string* const part : {&result.host, &result.device}) {
    if (!part->empty()) parts.push_back(escape(*part));
  }
  const std::string where = fmt::format("{}", fmt::join(parts, ", "));
  return where.empty() ? escape(result.what) : fmt::format("{}: {}", where, escape(result.what));
}

std::string lines_of(const CheckResult& result, std::size_t width) {
  const std::string verdict =
      std::string{preflight::name(result.verdict)} + (result.allowed ? " (allowed)" : "");
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

/// Words after `first`, on as many lines as they take, those below it indented to its end.
std::string wrapped(const std::string& first, const std::vector<std::string>& words) {
  constexpr std::size_t most_columns = 110;
  std::string text, line = first;
  const std::string indent(display_width(first), ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? "," : "");
    if (line.size() > indent.size() && line.size() + 1 + word.size() > most_columns) {
      text += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
  }
  return text + line + "\n";
}

/// What was not looked at, by why: on most machines that is much, and alike.
std::string render_not_checked(std::span<const CheckResult> results) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const CheckResult& result : results) {
    if (result.verdict != Verdict::not_checked) continue;
    const std::string why = subject(result);
    auto group = std::ranges::find(groups, why, [](const auto& one) { return one.first; });
    if (group == groups.end()) group = groups.insert(group, {why, {}});
    group->second.push_back(escape(result.name));
  }
  std::string text;
  for (const auto& [why, names] : groups) {
    text += fmt::format("  not checked: {}\n", why) + wrapped("    ", names);
  }
  return text;
}

}  // namespace

std::string count_checks(const results::PreflightData& preflight) {
  std::vector<std::string> parts;
  for (const Verdict verdict : preflight::all_verdicts) {
    const auto count = std::ranges::count(preflight.results, verdict, &CheckResult::verdict);
    const bool takes_s = count > 1 && verdict >= Verdict::warning;
    if (count > 0) {
      parts.push_back(fmt::format("{} {}{}", count, preflight::name(verdict), takes_s ? "s" : ""));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
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
      facts.emplace_back("PREFLIGHT", escape(preflight::to_sentence(result)));
    }
  }
  return facts;
}

Json checks_json(const results::PreflightData& preflight) {
  Json rows = Json::array();
  for (const CheckResult& result : preflight.results) {
    rows.push_back({{"name", result.name},
                    {"verdict", preflight::name(result.verdict)},
                    {"host", text_or_null(result.host)},
                    {"device", text_or_null(result.device)},
                    {"what", text_or_null(result.what)},
                    {"cost", text_or_null(result.cost)},
                    {"fix", text_or_null(result.fix)},
                    {"allowed", result.allowed}});
  }
  // Facts of a job nest a few levels deep: what goes deeper is damage, and would exhaust the stack.
  constexpr int deepest = 16;
  bool is_too_deep = false;
  const auto judge = [&](int depth, Json::parse_event_t, const Json&) {
    is_too_deep = is_too_deep || depth > deepest;
    return depth <= deepest;
  };
  Json facts = Json::parse(preflight.facts, judge, /*allow_exceptions=*/false);
  const bool is_damaged = facts.is_discarded() || is_too_deep;
  return {{"results", rows}, {"facts", is_damaged ? Json{} : std::move(facts)}};
}

std::string render_checks_json(const results::PreflightData& preflight) {
  Json document{{"schema_version", checks_schema_version}};
  document.update(checks_json(preflight));
  // ASCII only, so that printing it on a terminal is safe; bytes that are not UTF-8 are replaced.
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace isoscale::analysis
