// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/natural_order.hpp"
#include "analysis/render/checks.hpp"
#include "analysis/render/text_escape.hpp"
#include "base/text.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t most_warnings = 1000;  // that people read

/// "a, b, c and 5 more"
std::string listed(const std::set<std::string>& of) {
  constexpr std::size_t most = 3;
  std::vector<std::string> names{of.begin(), of.end()};
  std::ranges::sort(names, before_naturally);
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() < most) shown.push_back(escape(name));
  }
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

/// What a node is, from the facts of one of its ranks.
std::string node_text(const results::RankFacts& facts) {
  std::vector<std::string> parts;
  if (const auto model = facts.text.find("cpu_model"); model != facts.text.end()) {
    parts.push_back(escape(model->second));
  }
  if (const auto cores = facts.number.find("cores"); cores != facts.number.end()) {
    parts.push_back(base::counted(static_cast<int>(cores->second), "core"));
  }
  if (const auto memory = facts.number.find("memory_total"); memory != facts.number.end()) {
    parts.push_back(units::format(units::Bytes{static_cast<std::uint64_t>(memory->second)}));
  }
  if (const auto quota = facts.text.find("cpu_quota"); quota != facts.text.end()) {
    parts.push_back("limited to " + escape(quota->second));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add(Facts& facts, const std::string& key, const std::vector<std::string>& values) {
  std::vector<std::string> known;
  for (const std::string& value : values) {
    if (!value.empty()) known.push_back(escape(value));
  }
  if (!known.empty()) facts.emplace_back(key, fmt::format("{}", fmt::join(known, ", ")));
}

}  // namespace

std::string machine_text(const results::RunData& run) {
  std::set<std::string> hosts;
  std::set<std::string> kinds;
  for (const results::RankFacts& facts : run.rank_facts) {
    hosts.insert(facts.host);
    kinds.insert(node_text(facts));
  }
  std::string text =
      fmt::format("{} on {}", base::counted(run.ranks, "rank"), base::counted(run.nodes, "node"));
  if (!hosts.empty()) text += fmt::format(" ({})", listed(hosts));
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

Facts header(const RunReport& report, const Sections& sections) {
  const results::RunData& run = *report.data;
  Facts facts;
  if (!run.complete) {
    facts.emplace_back("PARTIAL", "the run did not come to its end; what follows was finished");
  }
  facts.emplace_back("machine", machine_text(run));
  add(facts, "device", {run.device, run.device_detail});
  // The rest of what the library says of itself is for the file.
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
  if (run.preflight && sections.has(Section::preflight)) {
    for (auto& fact : check_facts(*run.preflight)) facts.push_back(std::move(fact));
  }
  return facts;
}

}  // namespace isoscale::analysis
