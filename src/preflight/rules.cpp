// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/rules.hpp"

#include <map>

#include "base/text.hpp"

namespace isoscale::preflight {
namespace {

/// Applies a rule to each of its subjects. The operators also set the texts that all rules about
/// one kind of subject share.
class Judging {
 public:
  Judging(Findings& findings, const JobFacts& job) : findings_(findings), job_(job) {}

  void operator()(JudgeGpu judge_one) const {
    set_unknown(no_gpus(job_), how_on_gpus);
    for (const JobGpu& gpu : job_gpus(job_)) findings_.add(gpu.place(), judge_one(gpu, job_));
  }
  void operator()(JudgeGpus judge_all) const {
    set_unknown(no_gpus(job_), how_on_gpus);
    judge_all(findings_, job_gpus(job_), job_);
  }
  void operator()(JudgeNode judge_one) const {
    for (const CheckedNode& node : job_.nodes) {
      findings_.add({.host = node.host}, judge_one(node, job_));
    }
  }
  void operator()(JudgeNodeRanks judge_one) const {
    for (const NodeRanks& node : nodes_of_ranks(job_)) {
      findings_.add({.host = node.host()}, judge_one(node, job_));
    }
  }
  void operator()(JudgeRank judge_one) const {
    set_unknown("no rank is known", "");
    judge_ranks(findings_, job_, [&](const CheckedRank& rank, const NodeRanks& node) {
      return judge_one(rank, node, job_);
    });
  }
  void operator()(JudgeJob judge_all) const { judge_all(findings_, job_); }
  void operator()(const Flag<GpuFacts>& flag) const {
    set_unknown(no_gpus(job_), how_on_gpus);
    for (const JobGpu& gpu : job_gpus(job_)) findings_.add(gpu.place(), answer(flag, *gpu.gpu));
  }
  void operator()(const Flag<CheckedNode>& flag) const {
    for (const CheckedNode& node : job_.nodes) {
      findings_.add({.host = node.host}, answer(flag, node));
    }
  }
  void operator()(const Compare<GpuFacts>& compare) const {
    set_unknown(no_gpus(job_), how_on_gpus);
    compare_gpus(findings_, job_gpus(job_), compare);
  }
  void operator()(const Compare<CheckedNode>& compare) const {
    set_unknown("the nodes do not report it", "mount /proc and /sys");
    std::vector<Observed> observed;
    for (const CheckedNode& node : job_.nodes) {
      observed.push_back({.place = {.host = node.host}, .value = compare.text(node)});
    }
    findings_.otherwise.fine = fmt::format("{} {} on all nodes", compare.quantity,
                                           find_differences(findings_, observed, compare.quantity));
  }
  void operator()(const Versions& versions) const {
    for (const auto& [software, key] : versions.all) {
      if (!key.empty()) compare_versions(software, std::string{key});
    }
  }
  void operator()(BadSettings settings) const {
    set_unknown("no rank is known", "");
    find_bad_settings(findings_, job_, settings);
  }

 private:
  /// Sets the texts that the rule's row left empty.
  void set_unknown(std::string_view unknown, std::string_view how) const {
    if (findings_.otherwise.unknown.empty()) findings_.otherwise.unknown = unknown;
    if (findings_.otherwise.how.empty()) findings_.otherwise.how = how;
  }

  template <class Subject>
  static Answer answer(const Flag<Subject>& flag, const Subject& subject) {
    const std::optional<bool>& fact = subject.*flag.fact;
    if (!fact) return not_known;
    return {.wrong = std::string{*fact == flag.bad ? flag.wrong : ""}};
  }

  void compare_versions(std::string_view software, const std::string& key) const {
    std::vector<std::string> found;
    for (const CheckedRank& rank : job_.ranks) {
      if (const auto version = version_of(rank, key)) found.push_back(*version);
    }
    const auto usual = most_common(std::span<const std::string>{found});
    if (findings_.otherwise.fine.empty() && !found.empty()) {
      findings_.otherwise.fine = fmt::format("{} {} on all ranks", software, found.front());
    }
    judge_ranks(findings_, job_, [&](const CheckedRank& rank, const NodeRanks&) -> Answer {
      const std::optional<std::string> version = version_of(rank, key);
      if (!version) return not_known;
      if (version == usual) return nothing_wrong;
      return {.wrong = fmt::format("{} {}, elsewhere {}", software, *version, *usual)};
    });
  }

  Findings& findings_;
  const JobFacts& job_;
};

}  // namespace

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

Results judge(const Rule& rule, const JobFacts& job) {
  Findings findings{rule};
  if (rule.scope.device.empty() || rule.scope.device == job.device) {
    findings.otherwise = {.fine = std::string{rule.fine},
                          .unknown = std::string{rule.unknown},
                          .how = std::string{rule.how}};
    std::visit(Judging{findings, job}, rule.judge);
  } else {
    // A job on the host is told how to run the check on GPUs. A job on GPUs is not told to run on
    // the host only to have its BLAS checked.
    const bool can_be_checked = rule.scope.device == on_gpus.device;
    findings.otherwise = {.fine = {},
                          .unknown = std::string{rule.scope.unknown},
                          .how = can_be_checked ? std::string{rule.how} : std::string{}};
  }
  return std::move(findings).results();
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
      // "every rank" is the same text on all nodes, so that results of many nodes are joined.
      if (numbers.size() == node.ranks.size()) who = "every rank";
      findings.add({.host = node.host(), .device = std::move(who)}, first);
    }
  }
}

void find_bad_settings(Findings& findings, const JobFacts& job, BadSettings settings) {
  if (!job.ranks.empty()) findings.add(nothing_wrong);
  for (const BadSetting& bad : settings) {
    const std::string variable{bad.variable};
    judge_ranks(findings, job, [&](const CheckedRank& rank, const NodeRanks& node) -> Answer {
      const std::optional<std::string> value = setting(rank, variable);
      if (!value || !bad.hurts(*value, node, rank)) return not_concerned;
      return {.wrong = fmt::format("{}={}", variable, base::printable(*value)),
              .cost = bad.cost,
              .fix = bad.fix};
    });
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

std::string compare_gpus(Findings& findings, std::span<const JobGpu> gpus,
                         const Compare<GpuFacts>& compare, const Answer& difference) {
  std::vector<Observed> observed;
  for (const JobGpu& one : gpus) {
    observed.push_back({.place = one.place(),
                        .value = compare.text(*one.gpu),
                        .kind = one.gpu->name.value_or("")});
  }
  std::string first = find_differences(findings, observed, compare.quantity, difference);
  std::string& fine = findings.otherwise.fine;
  if (fine.empty()) fine = fmt::format("{} {} on all GPUs of a model", compare.quantity, first);
  return first;
}

}  // namespace isoscale::preflight
