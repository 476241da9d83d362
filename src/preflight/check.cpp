// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"
#include "preflight/job_facts.hpp"
#include "preflight/rules.hpp"

namespace isoscale::preflight {
namespace {

std::span<const Rule> all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> joined;
    for (const auto& subject :
         {launch_rules(), likeness_rules(), gpu_rules(), link_rules(), adapter_rules(),
          node_rules(), environment_rules(), sniff_rules()}) {
      joined.insert(joined.end(), subject.begin(), subject.end());
    }
    return joined;
  }();
  return rules;
}

void require_known(const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  for (const Rule& rule : all_rules()) known.push_back(rule.name);
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    throw base::UsageError(
        fmt::format("--allow {}: no check has this name{}; isoscale check shows "
                    "them all",
                    base::quoted(name), base::did_you_mean(name, known)));
  }
}

/// Joins results that differ only in the host. The joined result takes the place of the first one.
Results with_all_hosts(const Results& results) {
  Results joined;
  std::vector<std::vector<std::string>> hosts;
  std::map<std::tuple<Verdict, std::string, std::string, std::string, std::string>, std::size_t>
      places;
  for (const CheckResult& result : results) {
    const auto [place, is_new] = places.try_emplace(
        {result.verdict, result.device, result.what, result.cost, result.fix}, joined.size());
    if (is_new) {
      joined.push_back(result);
      hosts.emplace_back();
    }
    if (!result.host.empty()) hosts[place->second].push_back(result.host);
  }
  for (std::size_t i = 0; i < joined.size(); ++i) {
    std::set<std::string> seen;
    std::erase_if(hosts[i], [&](const std::string& host) { return !seen.insert(host).second; });
    joined[i].host = listed(hosts[i]);
  }
  return joined;
}

}  // namespace

std::span<const Check> all_checks() {
  static const std::vector<Check> checks = [] {
    std::vector<Check> all;
    for (const Rule& rule : all_rules()) all.push_back({.name = rule.name, .about = rule.about});
    return all;
  }();
  return checks;
}

std::vector<CheckResult> check_job(const JobFacts& job, const std::vector<std::string>& allowed) {
  require_known(allowed);
  std::vector<CheckResult> all;
  for (const Rule& rule : all_rules()) {
    const bool is_allowed = std::ranges::find(allowed, rule.name) != allowed.end();
    for (CheckResult& result : with_all_hosts(judge(rule, job))) {
      result.name = rule.name;
      result.allowed = is_allowed && result.verdict == Verdict::stop;
      all.push_back(std::move(result));
    }
  }
  return all;
}

}  // namespace isoscale::preflight
