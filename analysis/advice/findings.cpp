// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/advice/findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "analysis/advice/rules.hpp"
#include "base/text.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::advice {
namespace {

/// No rule judges a point if a larger share of its traced steps is unaccounted for (see
/// BreakdownResult::unaccounted).
constexpr double most_unaccounted = 0.1;

struct JudgedPoint {
  int ranks = 0;
  Judgement said;
};

bool speaks_of(Scope scope, const PointReport& point) {
  if (point.data->status != results::PointStatus::ok || point.data->verified == false) return false;
  if (scope == Scope::sound) return results::is_scaling_result(point.labels);
  return !results::has_label(point.labels, "oversubscribed") &&
         !results::has_label(point.labels, "shared-gpu");
}

std::optional<Judgement> judge(const Rule& rule, const PointSubject& subject) {
  if (rule.judge_point == nullptr || !speaks_of(rule.scope, subject.point)) return std::nullopt;
  // The spans of such a point do not show how its time was spent, so no rule judges it.
  if (subject.point.breakdown.unaccounted > most_unaccounted) return std::nullopt;
  auto said = rule.judge_point(subject, rule);
  if (said && said->severity) said->severity = std::clamp(*said->severity, 0.0, 1.0);
  return said;
}

/// Adds deliberately injected faults to the evidence, so that readers do not take them for real.
void add_injections(const PointReport& point, Judgement& said) {
  if (!results::has_label(point.labels, "injected")) return;
  said.evidence.push_back({.what = "injected",
                           .unit = Unit::text,
                           .text = fmt::format("{}", fmt::join(point.data->injections, ", "))});
}

bool is_replaced(const Rule& rule, const PointSubject& subject) {
  return std::ranges::any_of(rules(), [&](const Rule& other) {
    return other.instead_of == rule.name && judge(other, subject).has_value();
  });
}

bool is_larger(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return a.has_value() && !b.has_value();
  return *a > *b;
}

/// True if `a` ranks before `b`: known severities rank before unknown ones, and higher severities
/// before lower ones. If both severities are unknown, the larger size ranks first.
bool is_more_severe(const auto& a, const auto& b) {
  return a.severity || b.severity ? is_larger(a.severity, b.severity) : is_larger(a.size, b.size);
}

/// Merges a rule's judgements of several points into one finding. `judged` has at least one entry
/// and ascends in ranks.
Finding merged(const Rule& rule, const std::string& curve, std::vector<JudgedPoint> judged) {
  Finding finding{
      .rule = rule.name, .concern = rule.concern, .curve = curve, .source = rule.source};
  for (const JudgedPoint& at : judged) finding.ranks.push_back(at.ranks);
  // Among equally severe points, the finding's sentence describes the one with the most ranks.
  std::ranges::reverse(judged);
  std::ranges::stable_sort(judged, [](const JudgedPoint& a, const JudgedPoint& b) {
    return is_more_severe(a.said, b.said);
  });
  const JudgedPoint& most_severe = judged.front();
  finding.severity = most_severe.said.severity;
  finding.size = most_severe.said.size;
  finding.next_step = most_severe.said.next_step;
  constexpr std::size_t most_counts = 4;
  finding.sentence = fmt::format("{}: {}", base::counted(finding.ranks, "rank", most_counts),
                                 most_severe.said.sentence);
  if (judged.size() > 1) finding.sentence += fmt::format(" (on {})", most_severe.ranks);
  for (JudgedPoint& at : judged) {
    for (Evidence& evidence : at.said.evidence) {
      evidence.ranks = at.ranks;
      finding.evidence.push_back(std::move(evidence));
    }
  }
  return finding;
}

/// Adds the findings about a whole run. `launch` is the number of the run among several launches,
/// counted from 1, or 0 for a single launch.
void add_run(const RunReport& run, std::size_t launch, std::vector<Finding>& findings) {
  for (const Rule& rule : rules()) {
    if (rule.judge_run == nullptr) continue;
    auto said = rule.judge_run(run, rule);
    if (!said) continue;
    const bool known = std::ranges::any_of(findings, [&](const Finding& at) {
      return at.rule == rule.name && at.sentence.ends_with(said->sentence);
    });
    if (known) continue;
    std::string sentence =
        launch == 0 ? said->sentence : fmt::format("launch {}: {}", launch, said->sentence);
    findings.push_back({.rule = rule.name,
                        .concern = rule.concern,
                        .severity = said->severity,
                        .size = said->size,
                        .sentence = std::move(sentence),
                        .evidence = std::move(said->evidence),
                        .next_step = std::move(said->next_step),
                        .source = rule.source});
  }
}

/// Adds the findings about a curve. `subjects` are its points, ascending in ranks.
void add_curve(const std::string& title, const std::vector<PointSubject>& subjects,
               std::vector<Finding>& findings) {
  for (const Rule& rule : rules()) {
    std::vector<JudgedPoint> judged;
    for (const PointSubject& subject : subjects) {
      auto said = judge(rule, subject);
      if (!said || is_replaced(rule, subject)) continue;
      add_injections(subject.point, *said);
      judged.push_back({.ranks = subject.point.data->ranks, .said = std::move(*said)});
    }
    if (!judged.empty()) findings.push_back(merged(rule, title, std::move(judged)));
  }
}

/// Returns why some rules do not judge a point; "" if all rules do. Also returns "" for points that
/// failed, were skipped or are wrong, which reports list elsewhere.
std::string why_left_out(const PointReport& point) {
  if (point.data->status != results::PointStatus::ok || point.data->verified == false) return "";
  std::vector<std::string> why = results::unsound(point.labels);
  if (point.breakdown.unaccounted > most_unaccounted) why.emplace_back("spans contradict");
  return fmt::format("{}", fmt::join(why, ", "));
}

void add_left_out(const Curve& curve, std::vector<NotJudged>& left_out) {
  const std::size_t before = left_out.size();
  for (const PointReport& point : curve.points) {
    const std::string why = why_left_out(point);
    if (why.empty()) continue;
    const auto first = left_out.begin() + static_cast<std::ptrdiff_t>(before);
    auto known = std::find_if(first, left_out.end(), [&](const auto& at) { return at.why == why; });
    if (known == left_out.end()) {
      known = left_out.insert(known, {.curve = curve.title, .why = why});
    }
    known->ranks.push_back(point.data->ranks);
  }
}

std::size_t place_in_table(const Finding& finding) {
  const auto found = std::ranges::find(rules(), finding.rule, &Rule::name);
  return static_cast<std::size_t>(found - rules().begin());
}

void rank(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, {}, place_in_table);
  // Among findings of unknown severity a hardware fault ranks first, since it can be repaired.
  const auto is_soft = [](const Finding& at) { return at.concern != Concern::hardware; };
  std::ranges::stable_sort(findings, [&](const Finding& a, const Finding& b) {
    const bool unknown = !a.severity && !b.severity;
    if (unknown && is_soft(a) != is_soft(b)) return is_soft(b);
    return is_more_severe(a, b);
  });
}

/// Returns the run that the data of point number `at` of a joined curve come from. Not owned.
const RunReport* run_of(const merge::JoinedCurve& joined, std::size_t at) {
  for (const merge::LaunchPoint& launch : joined.launches[at]) {
    if (launch.point->data == joined.curve.points[at].data) return launch.run;
  }
  return nullptr;
}

}  // namespace

std::string_view name(Concern concern) {
  switch (concern) {
    case Concern::hardware:
      return "hardware";
    case Concern::measurement:
      return "measurement";
    case Concern::program:
      break;
  }
  return "program";
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
    for (std::size_t i = 0; i < joined.curve.points.size(); ++i) {
      const RunReport* const run = run_of(joined, i);
      if (run == nullptr) continue;
      subjects.push_back({.run = *run->data,
                          .calibration = run->calibration,
                          .point = joined.curve.points[i],
                          .launch_spread = merge::spread_of(joined.curve.points[i])});
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
  for (const merge::JoinedCurve& joined : report.joined.curves)
    add_left_out(joined.curve, left_out);
  return left_out;
}

}  // namespace isoscale::analysis::advice
