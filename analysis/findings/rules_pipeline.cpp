// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "analysis/breakdown/pipeline.hpp"
#include "analysis/findings/judges.hpp"
#include "analysis/findings/point_facts.hpp"
#include "units/text.hpp"

/// Rules about pipelines.
namespace isoscale::analysis::judges {
namespace {

/// The fewest microbatches whose bubble is no more than `share`: the idle time does not change with
/// their number, so idle / work goes with 1 / m.
double microbatches_for(double bubble, double microbatches, double share) {
  constexpr double rounding = 1e-9;
  const double idle = bubble / (1 - bubble) * microbatches;
  return std::ceil(idle * (1 - share) / share - rounding);
}

double bubble_with(double bubble, double microbatches, double enough) {
  const double idle = bubble / (1 - bubble) * microbatches / enough;
  return idle / (1 + idle);
}

}  // namespace

Said few_microbatches(const PointSubject& subject, const Rule& rule) {
  const results::PointData& point = *subject.point.data;
  const std::string schedule = option_of(point, "schedule");
  const auto microbatches = count_option(point, "microbatches");
  const std::optional<double> formula = formula_bubble(point);
  if (!formula || !microbatches) return std::nullopt;
  const double most = threshold_of(rule, "bubble"), bubble = *formula;
  if (!(bubble > most)) return std::nullopt;
  // Interleaved takes them in turns of pp.
  const double turn = schedule == "interleaved" ? point.mesh.pp : 1;
  const double enough = std::ceil(microbatches_for(bubble, *microbatches, most) / turn) * turn;
  Judgement said{.severity = bubble};
  said.sentence =
      fmt::format("{:.0f} microbatches on {} stages: the {} schedule alone leaves {} idle",
                  *microbatches, point.mesh.pp, schedule, units::format_percent(bubble));
  said.evidence = {{.what = "schedule's bubble", .value = bubble},
                   {.what = "microbatches", .unit = Unit::count, .value = *microbatches},
                   {.what = "enough", .unit = Unit::count, .value = enough}};
  const auto& breakdown = subject.point.breakdown;
  if (breakdown.mean && breakdown.bubble_known) {
    said.evidence.push_back(
        {.what = "measured bubble", .value = breakdown.mean->bubble / breakdown.mean->step});
  }
  said.next_step =
      fmt::format("--set microbatches={:.0f} leaves {}; or fewer stages: --mesh", enough,
                  units::format_percent(bubble_with(bubble, *microbatches, enough)));
  return said;
}

Said bubble_beyond_schedule(const PointSubject& subject, const Rule& rule) {
  const BreakdownResult& breakdown = subject.point.breakdown;
  if (!breakdown.mean || !breakdown.bubble_known || !breakdown.schedule_bubble) {
    return std::nullopt;
  }
  const double step = breakdown.mean->step;
  const double bubble = breakdown.mean->bubble / step;
  const double of_schedule = *breakdown.schedule_bubble / step;
  if (!(bubble - of_schedule > threshold_of(rule, "excess"))) return std::nullopt;
  Judgement said{.severity = bubble - of_schedule};
  said.sentence =
      fmt::format("the bubble is {} of the step, the schedule asks for {}: stages may be unequal",
                  units::format_percent(bubble), units::format_percent(of_schedule));
  said.evidence = {{.what = "measured bubble", .value = bubble},
                   {.what = "schedule's bubble", .value = of_schedule}};
  const bool head = option_of(*subject.point.data, "vocabulary") == "on";
  said.next_step = head ? "--set vocabulary=off shows what the output projection costs"
                        : "compare the stages' compute: breakdown_of_rank in report --format json";
  return said;
}

}  // namespace isoscale::analysis::judges
