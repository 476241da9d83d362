// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"
#include "preflight/job_facts.hpp"
#include "preflight/rules.hpp"

namespace isoscale::preflight {
namespace {

std::vector<Check> join_checks() {
  std::vector<Check> checks;
  for (const auto& subject :
       {launch_checks(), likeness_checks(), gpu_checks(), link_checks(), adapter_checks(),
        node_checks(), environment_checks(), sniff_checks()}) {
    checks.insert(checks.end(), subject.begin(), subject.end());
  }
  return checks;
}

void require_known(const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  for (const Check& check : all_checks()) known.push_back(check.name);
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    throw base::UsageError(
        fmt::format("--allow {}: no check has this name{}; isoscale check shows "
                    "them all",
                    base::quoted(name), base::did_you_mean(name, known)));
  }
}

/// Joins results that differ only in the host. The joined result takes the place of the first of
/// them.
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

void Findings::warn(Place place, Finding finding) {
  found_.push_back({.name = {},
                    .verdict = Verdict::warning,
                    .host = std::move(place.host),
                    .device = std::move(place.device),
                    .what = std::move(finding.what),
                    .cost = std::move(finding.cost),
                    .fix = std::move(finding.fix)});
}

void Findings::stop(Place place, Finding finding) {
  warn(std::move(place), std::move(finding));
  found_.back().verdict = Verdict::stop;
}

Results Findings::results(const Otherwise& otherwise) && {
  if (!found_.empty()) return std::move(found_);
  CheckResult result;
  result.verdict = known_ > 0 ? Verdict::ok : Verdict::not_checked;
  result.what = known_ > 0 ? otherwise.fine : otherwise.unknown;
  if (known_ == 0) result.fix = otherwise.how;
  if (known_ > 0 && unknown_ > 0) {
    result.what += fmt::format("; not known in {} of {} places", unknown_, known_ + unknown_);
  }
  return {result};
}

void find_differences(Findings& findings, std::span<const Observed> observed,
                      const Difference& difference) {
  std::map<std::string_view, std::vector<std::string>> values;
  for (const Observed& one : observed) {
    if (findings.knows(one.value)) values[one.kind].push_back(*one.value);
  }
  std::map<std::string_view, std::string> usual;
  for (const auto& [kind, of_kind] : values) {
    usual[kind] = *most_common(std::span<const std::string>{of_kind});
  }
  for (const Observed& one : observed) {
    if (!one.value || *one.value == usual[one.kind]) continue;
    Finding finding{.what = fmt::format("{} {}, elsewhere {}", difference.quantity, *one.value,
                                        usual[one.kind]),
                    .cost = difference.cost,
                    .fix = difference.fix};
    if (difference.verdict == Verdict::stop) {
      findings.stop(one.place, std::move(finding));
    } else {
      findings.warn(one.place, std::move(finding));
    }
  }
}

std::string listed(std::span<const std::string> names) {
  constexpr std::size_t most = 3, shown = 2;  // as many as fit a short line
  if (names.size() > most) return base::listed(names, shown);
  if (names.size() < 2) return base::listed(names);
  return fmt::format("{} and {}", base::listed(names.first(names.size() - 1)), names.back());
}

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::not_checked:
      return "not checked";
    case Verdict::warning:
      return "warning";
    case Verdict::stop:
      break;
  }
  return "stop";
}

std::span<const Check> all_checks() {
  static const std::vector<Check> checks = join_checks();
  return checks;
}

std::vector<CheckResult> check_job(const JobFacts& job, const std::vector<std::string>& allowed) {
  require_known(allowed);
  std::vector<CheckResult> all;
  for (const Check& check : all_checks()) {
    const bool is_allowed = std::ranges::find(allowed, check.name) != allowed.end();
    for (CheckResult& result : with_all_hosts(check.judge(job))) {
      result.name = check.name;
      result.allowed = is_allowed && result.verdict == Verdict::stop;
      all.push_back(std::move(result));
    }
  }
  return all;
}

bool stops(std::span<const CheckResult> results) {
  return std::ranges::any_of(results, [](const CheckResult& result) {
    return result.verdict == Verdict::stop && !result.allowed;
  });
}

std::string to_sentence(const CheckResult& result) {
  const auto joined = [](std::initializer_list<const std::string*> parts,
                         std::string_view between) {
    std::string text;
    for (const std::string* part : parts) {
      if (!part->empty()) text += fmt::format("{}{}", text.empty() ? "" : between, *part);
    }
    return text;
  };
  const std::string head =
      fmt::format("{} {}{}", name(result.verdict), result.name, result.allowed ? " (allowed)" : "");
  const std::string place = joined({&result.host, &result.device}, ", ");
  const std::string body = joined({&result.what, &result.cost, &result.fix}, "; ");
  return joined({&head, &place, &body}, ": ");
}

}  // namespace isoscale::preflight
