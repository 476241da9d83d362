// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/why.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "analysis/curves.hpp"

namespace isoscale::analysis {
namespace {

/// Below half a point a cause is not worth a word.
constexpr double least_shown = 0.005;

bool has_cause(const Waterfall& of, std::string_view cause) {
  return std::ranges::find(of.lost, cause, &LostTime::cause) != of.lost.end();
}

bool is_gemm(std::string_view cause) { return cause.starts_with("GEMM"); }
bool is_waiting(std::string_view cause) {
  return cause == "imbalance" || cause == "noise" || cause == "waiting";
}
bool is_communication(std::string_view cause) {
  return cause.ends_with(" transfer") || cause == "bubble" || cause == "communication" ||
         is_waiting(cause);
}

/// What both waterfalls can say of a cause.
class Partition {
 public:
  Partition(const Waterfall& a, const Waterfall& b)
      : gemms_(has_cause(a, "GEMM overlap") != has_cause(b, "GEMM overlap")),
        waiting_(has_cause(a, "waiting") != has_cause(b, "waiting")),
        communication_(has_cause(a, "communication") || has_cause(b, "communication")) {}

  [[nodiscard]] std::string name(const std::string& cause) const {
    if (gemms_ && is_gemm(cause)) return "GEMMs";
    if (communication_ && is_communication(cause)) return "communication";
    if (waiting_ && is_waiting(cause)) return "waiting";
    return cause;
  }

 private:
  bool gemms_, waiting_, communication_;
};

void add(std::vector<CausePart>& parts, const std::string& cause, double value) {
  const auto known = std::ranges::find(parts, cause, &CausePart::cause);
  if (known == parts.end()) {
    parts.push_back({.cause = cause, .value = value});
  } else {
    known->value += value;
  }
}

void add_notes(const Waterfall& from, std::vector<std::string>& notes) {
  for (const std::string& sentence : from.missing) {
    if (std::ranges::find(notes, sentence) == notes.end()) notes.push_back(sentence);
  }
}

void explain_efficiency(const PointReport& first, const PointReport& here, Why& result) {
  const auto& a = first.causes.waterfall;
  const auto& b = here.causes.waterfall;
  if (!a || !b) {
    result.no_efficiency =
        "the causes need a breakdown of the step on both sides, here and at the baseline";
    return;
  }
  result.efficiency = above(efficiency_causes(*a, *b), least_shown);
  add_notes(*a, result.notes);
  add_notes(*b, result.notes);
}

void explain_step(const PointReport& first, const PointReport& here, Why& result) {
  const std::optional<StepLoss> a = step_loss(first), b = step_loss(here);
  if (!a || !b) {
    result.no_step = "the causes need traced steps on both sides";
    result.step_first =
        first.step_time->median / first.data->work_per_step * here.data->work_per_step;
    result.step_here = here.step_time->median;
    return;
  }
  const Waterfall between = waterfall(*b, *a);
  result.step_first = between.ideal;
  result.step_here = between.measured;
  std::vector<CausePart> parts;
  for (const LostTime& lost : between.lost) add(parts, lost.cause, lost.seconds);
  result.step = above(std::move(parts), least_shown * between.ideal);
  add_notes(between, result.notes);
}

}  // namespace

std::vector<CausePart> efficiency_causes(const Waterfall& here, const Waterfall& there) {
  const Partition partition{here, there};
  std::vector<CausePart> parts;
  for (const LostTime& lost : here.lost) {
    add(parts, partition.name(lost.cause), -lost.seconds / here.measured);
  }
  for (const LostTime& lost : there.lost) {
    add(parts, partition.name(lost.cause), lost.seconds / there.measured);
  }
  return parts;
}

std::vector<CausePart> above(std::vector<CausePart> parts, double limit) {
  const auto is_small = [limit](const CausePart& at) { return std::abs(at.value) < limit; };
  double rest = 0;
  for (const CausePart& part : parts) {
    if (is_small(part)) rest += part.value;
  }
  std::erase_if(parts, is_small);
  std::ranges::stable_sort(parts, std::ranges::greater{},
                           [](const CausePart& at) { return std::abs(at.value); });
  if (rest != 0) parts.push_back({.cause = std::string{other_causes}, .value = rest});
  std::ranges::stable_partition(parts,
                                [](const CausePart& at) { return at.cause != untraced_part; });
  return parts;
}

Why why(const PointReport& first, const PointReport& here, AtBaseline baseline) {
  Why result;
  if (baseline == AtBaseline::no) explain_efficiency(first, here, result);
  explain_step(first, here, result);
  return result;
}

}  // namespace isoscale::analysis
