// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/rules.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"

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
    throw base::usage_error(
        "--allow {}: no check has this name{}; isoscale check shows "
        "them all",
        base::quoted(name), base::did_you_mean(name, known));
  }
}

/// Joins results that differ only in the host. The joined result takes the position of the first of
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

/// Applies a rule to the facts of a job, and returns its results.
Results judge(const Rule& rule, const JobFacts& job) {
  Findings findings{rule};
  if (rule.scope.device.empty() || rule.scope.device == job.device) {
    rule.judge(findings, job);
  } else {
    findings.otherwise.unknown = rule.scope.unknown;
    // If this rule is for GPUs and the job runs on the host, the result tells how to run the check
    // on GPUs. If the rule is for the host, there is no such advice: it would be pointless to run
    // on the host only to have the BLAS library checked.
    if (rule.scope.device != on_gpus.device) findings.otherwise.how = {};
  }
  return std::move(findings).results();
}

}  // namespace

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

Findings::Findings(const Rule& rule)
    : otherwise{.fine = std::string{rule.fine},
                .unknown = std::string{rule.unknown},
                .how = std::string{rule.how}},
      rule_(rule) {}

void Findings::add(Place place, const Answer& answer) {
  if (answer.fact == Answer::Fact::known) ++known_;
  if (answer.fact == Answer::Fact::unknown) ++unknown_;
  if (answer.wrong.empty()) return;
  found_.push_back({.name = {},
                    .verdict = answer.verdict.value_or(rule_.verdict),
                    .host = std::move(place.host),
                    .device = std::move(place.device),
                    .what = answer.wrong,
                    .cost = std::string{answer.cost.empty() ? rule_.cost : answer.cost},
                    .fix = std::string{answer.fix.empty() ? rule_.fix : answer.fix}});
}

Results Findings::results() && {
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

void judge_ranks(Findings& findings, const JobFacts& job,
                 const std::function<Answer(const CheckedRank&, const NodeRanks&)>& judge_one) {
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    std::map<std::string, std::pair<Answer, std::vector<std::string>>> answers;
    for (const CheckedRank* rank : node.ranks) {
      Answer answer = judge_one(*rank, node);
      if (answer.wrong.empty()) {
        findings.add(answer);
        continue;
      }
      auto& [first, numbers] = answers[answer.wrong];
      first = std::move(answer);
      numbers.push_back(fmt::format("{}", rank->rank));
    }
    for (const auto& [wrong, answer] : answers) {
      const auto& [first, numbers] = answer;
      std::string who = fmt::format("{} {}", base::plural(numbers.size(), "rank"), listed(numbers));
      // The text "every rank" is the same on all nodes, so the results of many nodes can be joined.
      if (numbers.size() == node.ranks.size()) who = "every rank";
      findings.add({.host = node.host(), .device = std::move(who)}, first);
    }
  }
}

std::string find_differences(Findings& findings, std::span<const Observed> observed,
                             std::string_view quantity, const Answer& difference) {
  std::string first;
  std::map<std::string_view, std::vector<std::string>> values;
  for (const Observed& one : observed) {
    if (!findings.knows(one.value)) continue;
    values[one.kind].push_back(*one.value);
    if (first.empty()) first = *one.value;
  }
  std::map<std::string_view, std::string> usual;
  for (const auto& [kind, of_kind] : values) {
    usual[kind] = *most_common(std::span<const std::string>{of_kind});
  }
  for (const Observed& one : observed) {
    if (!one.value || *one.value == usual[one.kind]) continue;
    Answer answer = difference;
    answer.wrong = fmt::format("{} {}, elsewhere {}", quantity, *one.value, usual[one.kind]);
    findings.add(one.place, answer);
  }
  return first;
}

}  // namespace isoscale::preflight
