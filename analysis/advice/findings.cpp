// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/advice/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <stdexcept>
#include <utility>

#include "analysis/advice/rules.hpp"
#include "analysis/group_by.hpp"
#include "base/text.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::advice {
namespace {

/// The share of the traced steps above which no rule judges a point: time in no category of the
/// breakdown, and time of spans outside of their step (BreakdownResult::unaccounted).
constexpr double most_unaccounted = 0.1;

bool speaks_of(Scope scope, const PointReport& point) {
  if (point.data->status != results::PointStatus::ok || point.data->verified == false) return false;
  if (scope == Scope::sound) return results::is_scaling_result(point.labels);
  return !results::shares_hardware(point.labels);
}

/// Returns a rule's finding about a point; absent if it finds nothing or does not judge the point.
Said judge(const Rule& rule, const PointSubject& subject) {
  const PointReport& point = subject.point;
  if (rule.judge_point == nullptr || !speaks_of(rule.scope, point)) return std::nullopt;
  // With so much time unaccounted for, the spans do not show how the point's time was spent.
  if (point.breakdown.unaccounted > most_unaccounted) return std::nullopt;
  Said said = rule.judge_point(subject, rule);
  if (!said) return std::nullopt;
  if (said->severity) said->severity = std::clamp(*said->severity, 0.0, 1.0);
  // Readers must not take deliberately injected faults for real ones.
  if (results::has_label(point.labels, "injected")) {
    said->add("injected", base::listed(point.data->injections));
  }
  said->ranks = {point.data->ranks};
  for (Evidence& at : said->evidence) at.ranks = point.data->ranks;
  return said;
}

bool is_replaced(const Rule& rule, const PointSubject& subject) {
  return std::ranges::any_of(rules(), [&](const Rule& other) {
    return other.instead_of == rule.name && judge(other, subject).has_value();
  });
}

/// True if `a` ranks before `b`: known severities rank before unknown ones, and higher severities
/// before lower ones. If both severities are unknown, the larger size ranks first.
bool is_more_severe(const Finding& a, const Finding& b) {
  // An absent std::optional compares less than any number.
  return a.severity || b.severity ? a.severity > b.severity : a.size > b.size;
}

void add(const Rule& rule, Finding found, std::vector<Finding>& findings) {
  found.rule = rule.name;
  found.concern = rule.concern;
  found.source = rule.source;
  findings.push_back(std::move(found));
}

/// Merges one rule's findings about points of a curve into one finding. `at_points` is not empty
/// and is ordered by ascending rank count.
Finding merged(const std::string& curve, std::vector<Finding> at_points) {
  std::vector<int> ranks;
  for (const Finding& at : at_points) ranks.push_back(at.ranks.front());
  // Among equally severe points, the finding's sentence describes the one with the most ranks.
  std::ranges::reverse(at_points);
  std::ranges::stable_sort(at_points, is_more_severe);
  Finding finding = std::move(at_points.front());
  constexpr std::size_t most_counts = 4;
  finding.sentence =
      fmt::format("{}: {}", base::counted(ranks, "rank", most_counts), finding.sentence);
  if (at_points.size() > 1) finding.sentence += fmt::format(" (on {})", finding.ranks.front());
  for (Finding& other : at_points | std::views::drop(1)) {
    std::ranges::move(other.evidence, std::back_inserter(finding.evidence));
  }
  finding.curve = curve;
  finding.ranks = std::move(ranks);
  return finding;
}

/// Adds the findings about a whole run, except those that an earlier launch already gave. `launch`
/// is the number of the run among several launches, counted from 1, or 0 for a single launch.
void add_run(const RunReport& run, std::size_t launch, std::vector<Finding>& findings) {
  for (const Rule& rule : rules()) {
    if (rule.judge_run == nullptr) continue;
    Said said = rule.judge_run(run, rule);
    const auto is_same = [&](const Finding& at) {
      return at.rule == rule.name && at.sentence.ends_with(said->sentence);
    };
    if (!said || std::ranges::any_of(findings, is_same)) continue;
    if (launch > 0) said->sentence = fmt::format("launch {}: {}", launch, said->sentence);
    add(rule, *std::move(said), findings);
  }
}

/// Adds the findings about a curve. `subjects` are its points, ordered by ascending rank count.
void add_curve(const std::string& title, const std::vector<PointSubject>& subjects,
               std::vector<Finding>& findings) {
  for (const Rule& rule : rules()) {
    std::vector<Finding> at_points;
    for (const PointSubject& subject : subjects) {
      Said said = judge(rule, subject);
      if (said && !is_replaced(rule, subject)) at_points.push_back(*std::move(said));
    }
    if (!at_points.empty()) add(rule, merged(title, std::move(at_points)), findings);
  }
}

/// Returns why some rules do not judge a point; "" if all rules do. Also returns "" for points that
/// failed, were skipped or did not pass verification: reports list these elsewhere.
std::string why_left_out(const PointReport& point) {
  if (point.data->status != results::PointStatus::ok || point.data->verified == false) return "";
  std::vector<std::string> why = results::unsound(point.labels);
  if (point.breakdown.unaccounted > most_unaccounted) why.emplace_back("inconsistent spans");
  return base::listed(why);
}

void add_left_out(const Curve& curve, std::vector<NotJudged>& left_out) {
  for (const auto& [why, points] : grouped(pointers_to(curve.points), why_left_out)) {
    if (why.empty()) continue;
    NotJudged& at = left_out.emplace_back(NotJudged{.curve = curve.title, .why = why});
    for (const PointReport* const point : points) at.ranks.push_back(point->data->ranks);
  }
}

void rank(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, {}, [](const Finding& at) {
    return std::ranges::find(rules(), at.rule, &Rule::name) - rules().begin();
  });
  // Among findings of unknown severity a hardware fault ranks first, since it can be repaired.
  const auto is_soft = [](const Finding& at) { return at.concern != Concern::hardware; };
  std::ranges::stable_sort(findings, [&](const Finding& a, const Finding& b) {
    const bool unknown = !a.severity && !b.severity;
    if (unknown && is_soft(a) != is_soft(b)) return is_soft(b);
    return is_more_severe(a, b);
  });
}

}  // namespace

double Rule::limit(std::string_view what) const {
  const auto found = std::ranges::find(thresholds, what, &Threshold::what);
  if (found == thresholds.end()) throw std::out_of_range("a rule without that threshold");
  return found->value;
}

std::span<const Rule> rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> joined;
    for (const auto table : {communication_rules(), compute_rules(), machine_rules()}) {
      joined.insert(joined.end(), table.begin(), table.end());
    }
    return joined;
  }();
  return all;
}

std::optional<double> number_of(const results::RankFacts& facts, const std::string& key) {
  const auto found = facts.number.find(key);
  return found == facts.number.end() ? std::nullopt : std::optional{found->second};
}

std::string short_place(const results::RunData& run, const results::PointData& point, int rank) {
  const results::RankFacts* const facts = facts_of(run.rank_facts, point, rank);
  const int world = world_rank(point, rank);
  if (facts == nullptr || facts->host.empty()) return fmt::format("rank {}", world);
  return fmt::format("rank {} ({})", world, facts->host);
}

void Finding::add(std::string what, double value, Unit unit) {
  evidence.push_back({.what = std::move(what), .unit = unit, .value = value});
}

void Finding::add(std::string what, std::string text) {
  evidence.push_back({.what = std::move(what), .unit = Unit::text, .text = std::move(text)});
}

std::string_view name(Concern concern) {
  constexpr std::array<std::string_view, 3> names{"hardware", "program", "measurement"};
  return names[static_cast<std::size_t>(concern)];
}

std::string value_text(const Evidence& evidence) {
  return evidence.unit == Unit::text ? evidence.text : value_text(evidence.value, evidence.unit);
}

std::string to_text(const Evidence& evidence) {
  const std::string_view colon = evidence.unit == Unit::text ? ":" : "";
  return fmt::format("{}{} {}", evidence.what, colon, value_text(evidence));
}

std::vector<Finding> findings_of(const RunReport& run) {
  std::vector<Finding> findings;
  for (const Curve& curve : run.curves) {
    std::vector<PointSubject> subjects;
    for (const PointReport& point : curve.points) {
      subjects.push_back({.run = *run.data, .calibration = run.calibration, .point = point});
    }
    add_curve(curve.title, subjects, findings);
  }
  add_run(run, 0, findings);
  rank(findings);
  return findings;
}

std::vector<Finding> findings_of(const merge::Report& report) {
  if (report.runs.size() == 1) return findings_of(report.runs.front());
  std::vector<Finding> findings;
  for (const merge::JoinedCurve& joined : report.joined.curves) {
    std::vector<PointSubject> subjects;
    for (const PointReport& point : joined.curve.points) {
      const RunReport& typical = report.runs[point.launch - 1];
      subjects.push_back({.run = *typical.data,
                          .calibration = typical.calibration,
                          .point = point,
                          .launch_spread = merge::spread_of(point)});
    }
    add_curve(joined.curve.title, subjects, findings);
  }
  for (std::size_t i = 0; i < report.runs.size(); ++i) add_run(report.runs[i], i + 1, findings);
  rank(findings);
  return findings;
}

std::vector<NotJudged> left_out_of(const RunReport& run) {
  std::vector<NotJudged> left_out;
  for (const Curve& curve : run.curves) add_left_out(curve, left_out);
  return left_out;
}

std::vector<NotJudged> left_out_of(const merge::Report& report) {
  if (report.runs.size() == 1) return left_out_of(report.runs.front());
  std::vector<NotJudged> left_out;
  for (const merge::JoinedCurve& at : report.joined.curves) add_left_out(at.curve, left_out);
  return left_out;
}

}  // namespace isoscale::analysis::advice
