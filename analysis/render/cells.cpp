// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "analysis/causes/cause_tables.hpp"
#include "analysis/labels.hpp"
#include "analysis/render/node_cells.hpp"
#include "analysis/render/sentences.hpp"
#include "analysis/render/text_escape.hpp"
#include "analysis/statistics/looks.hpp"
#include "analysis/statistics/overhead.hpp"
#include "base/text.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

std::string count(double value) {
  std::string text = units::format_count(value, "");
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// Why a step time has no interval; "" when it has one, or when there is no step time.
std::string no_interval(const PointReport& point) {
  if (!point.step_time || point.step_time->lower) return "";
  if (point.step_time->samples < fewest_steps) return "no interval: fewer than 6 steps count";
  if (point.step_time->block == 1) {
    return "no interval: too few steps count for one that repeated looks leave true";
  }
  return "no interval: the times of successive steps depend on each other, and there are too few";
}

/// "1 step", "4 steps": those that count.
std::string steps_text(const PointReport& point) { return base::counted(point.steps, "step"); }

/// How the point did against what the run's own parts reach alone.
void add_to_calibration(const PointReport& point, Sentences& mfu, Sentences& links) {
  if (point.mfu) {
    mfu.add(point, percent(point.mfu) + " of the best multiplication of this run");
  }
  std::string text;
  for (const LinkShare& at : point.link_shares) {
    text += fmt::format("{}{} on {} ran at {} of what the link gives alone",
                        text.empty() ? "" : "; ", at.op, at.axes, percent(at.share));
  }
  links.add(point, text);
}

std::string memory_text(double bytes) {
  return units::format(units::Bytes{static_cast<std::uint64_t>(bytes)});
}

}  // namespace

const std::array<Category, 7>& categories() {
  static constexpr std::array<Category, 7> all{{
      {"compute", "█", "an op computes", &Breakdown::compute},
      {"copies", "▓", "data is copied and nothing computes", &Breakdown::copies},
      {"transfer", "▒", "exposed communication: all partners are there", &Breakdown::transfer},
      {"wait", "░", "exposed communication: a partner has yet to come", &Breakdown::wait},
      {"bubble", "o", "waiting for pipeline partners that a free network would leave",
       &Breakdown::bubble},
      {"gap", "·", "nothing runs", &Breakdown::gap},
      {"other", "?", "nothing explains it", &Breakdown::other},
  }};
  return all;
}

std::string percent(std::optional<double> ratio) {
  return ratio ? units::format_percent(*ratio) : std::string{undefined};
}

std::string fixed(std::optional<double> value) {
  return value ? fmt::format("{:.2f}", *value) : std::string{undefined};
}

std::string step_time(const PointReport& point) {
  if (!point.step_time) return std::string{undefined};
  const std::string time = units::format(units::Seconds{point.step_time->median});
  return has_label(point.labels, few_steps) ? fmt::format("{} ({})", time, steps_text(point))
                                            : time;
}

std::string interval(const PointReport& point) {
  if (!point.step_time) return std::string{undefined};
  const Estimate& time = *point.step_time;
  return interval_text({.value = time.median, .lower = time.lower, .upper = time.upper});
}

std::string interval_text(const Located& at) {
  if (!at.lower || !at.upper || !(at.value > 0)) return std::string{undefined};
  constexpr double alike = 1.2;    // below and above within a fifth of each other
  constexpr double narrow = 0.01;  // half the width of what is narrower says as much
  const double below = 1 - *at.lower / at.value, above = *at.upper / at.value - 1;
  const double wider = std::max(below, above);
  if (wider <= narrow || wider <= alike * std::min(below, above)) {
    return "±" + units::format_percent((below + above) / 2);
  }
  return fmt::format("{:+.1f}% {:+.1f}%", -100 * below, 100 * above);
}

std::optional<Located> speedup_of(const PointReport& point) {
  if (!point.speedup) return std::nullopt;
  const auto& at = point.speedup_interval;
  if (!at || !at->lower || !at->upper || *at->lower == *at->upper) return Located{*point.speedup};
  return at;
}

std::optional<Located> efficiency_of(const PointReport& point) {
  std::optional<Located> at = speedup_of(point);
  if (!at || !point.efficiency) return std::nullopt;
  const double scale = *point.efficiency / *point.speedup;
  at->value = *point.efficiency;
  if (at->lower) at->lower = *at->lower * scale;
  if (at->upper) at->upper = *at->upper * scale;
  return at;
}

std::string few_steps_text(const PointReport& point) {
  if (!has_label(point.labels, few_steps)) return "";
  return fmt::format(
      "few-steps: {} count{}: the time is unreliable, and so is everything derived from it",
      steps_text(point), point.steps == 1 ? "s" : "");
}

std::string throughput(const PointReport& point) {
  return point.throughput ? count(*point.throughput) : std::string{undefined};
}

std::string throughput_unit(const Curve& curve) {
  const auto grows = [](const PointReport& point) {
    return std::abs(point.work_growth - 1) > 1e-9;
  };
  const bool scaled = std::ranges::any_of(curve.points, grows);
  for (const PointReport& point : curve.points) {
    if (point.data->throughput_unit.empty()) continue;
    return (scaled ? "scaled " : "") + escape(point.data->throughput_unit);
  }
  return "throughput";
}

std::string flops_per_rank(const PointReport& point) {
  return point.flops_per_rank ? count(*point.flops_per_rank) : std::string{undefined};
}

std::string share(const PointReport& point, double Breakdown::*part) {
  if (!point.breakdown.mean) return std::string{undefined};
  return share_text(point.breakdown, part, *point.breakdown.mean);
}

bool is_known(const BreakdownResult& breakdown, double Breakdown::*part) {
  if (part == &Breakdown::wait) return breakdown.wait_known;
  return part != &Breakdown::bubble || breakdown.bubble_known;
}

std::string share_text(const BreakdownResult& breakdown, double Breakdown::*part,
                       const Breakdown& parts) {
  const double seconds = parts.*part;
  const std::string share = percent(seconds / breakdown.mean->step);
  if (!is_known(breakdown, part)) return seconds == 0 ? std::string{undefined} : "≥" + share;
  // A bare 0 is easily passed over, and tells what never happened from what rounds to 0.0%.
  if (seconds == 0) return "0";
  return part == &Breakdown::transfer && !breakdown.wait_known ? "≤" + share : share;
}

std::string notes(const PointReport& point) {
  std::vector<std::string> all(point.labels.size());
  std::ranges::transform(point.labels, all.begin(), escape);
  if (!point.data->verified) {
    all.emplace_back("unverified");
  } else if (!*point.data->verified) {
    all.emplace_back("WRONG");
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string excuse(const PointReport& point) {
  if (point.data->status == results::PointStatus::ok) return "";
  const std::string reason = escape(point.data->reason);
  return fmt::format("{}: {}", results::name(point.data->status),
                     reason.empty() ? "no reason was recorded" : reason);
}

Facts all_skipped(const Curve& curve) {
  Sentences reasons;
  for (const PointReport& point : curve.points) {
    if (point.data->status != results::PointStatus::skipped) return {};
    const std::string reason = escape(point.data->reason);
    reasons.add(point, reason.empty() ? "no reason was recorded" : reason);
  }
  Facts facts;
  reasons.append_to(facts, "skipped");
  return facts;
}

/// "" where nothing was replayed.
std::string soak_text(const results::Soak& soak) {
  if (soak.replays == 0) return "";
  const std::string found = soak.differing.empty()
                                ? "all left the same bits"
                                : fmt::format("{} differ, see WRONG", soak.differing.size());
  return fmt::format("{} replays of one step in {}: {}", soak.replays,
                     units::format(units::Seconds{soak.seconds}), found);
}

Facts remarks(const Curve& curve) {
  Sentences verification;
  Sentences intervals;
  Sentences samples;
  Sentences tracing;
  Sentences labels;
  Sentences breakdown;
  Sentences folding;
  Sentences graphs;
  Sentences casts;
  Sentences mfu;
  Sentences links;
  Sentences axes;
  Sentences soaks;
  Sentences growth;
  Sentences memory;
  std::vector<int> verified;
  std::vector<std::string> rates;
  for (const PointReport& point : curve.points) {
    if (point.data->verified == true) verified.push_back(point.data->ranks);
    if (point.data->verified == false) {
      verification.add(point, "the results do not verify: " + escape(point.data->verification));
    }
    soaks.add(point, soak_text(point.data->soak));
    if (has_label(point.labels, "shared-gpu")) {
      labels.add(point, "shared-gpu: ranks share a GPU, so only correctness counts");
    }
    if (point.data->status != results::PointStatus::ok) continue;
    axes.add(point, axes_text(point));
    intervals.add(point, no_interval(point));
    intervals.add(point, out_of_time(*point.data, point.step_time));
    for (const std::string& sentence : point.flags.sentences) samples.add(point, sentence);
    tracing.add(point, overhead_warning(point.instrumentation_overhead));
    if (has_label(point.labels, "oversubscribed")) {
      labels.add(point, "oversubscribed: ranks share cores, not a scaling result");
    }
    if (has_label(point.labels, "injected")) {
      const std::string given = fmt::format("{}", fmt::join(point.data->injections, ", "));
      labels.add(point, fmt::format("injected: {}", given.empty() ? "faults" : escape(given)));
    }
    labels.add(point, few_steps_text(point));
    if (has_label(point.labels, "not-closed")) {
      labels.add(point, fmt::format("not-closed: nothing explains {} of the traced time",
                                    percent(point.breakdown.unaccounted)));
    }
    breakdown.add(point, escape(point.breakdown.missing));
    if (point.data->folded) {
      const std::string reason = escape(point.data->folded_reason);
      folding.add(point, "all streams played as one" + (reason.empty() ? "" : ": " + reason));
    }
    if (point.data->graph == "on") graphs.add(point, "steps replayed as one captured graph");
    if (const auto cast = point.op_time.find("cast"); cast != point.op_time.end()) {
      casts.add(point, percent(cast->second / *point.traced_step) +
                           " of the step goes into casts and transposes");
    }
    add_to_calibration(point, mfu, links);
    if (point.samples_per_second) {
      rates.push_back(fmt::format("{} on {}", count(*point.samples_per_second),
                                  base::counted(point.data->ranks, "rank")));
    }
    if (std::abs(point.work_growth - 1) > 1e-9) {
      growth.add(point, fmt::format("tokens count {} times: so much larger is the model than that "
                                    "of one rank",
                                    count(point.work_growth)));
    }
    if (point.host_memory_per_rank.value_or(0) > 0) {
      memory.add(point, fmt::format("{} a rank in pinned and pageable buffers of the host, {} in "
                                    "all others",
                                    memory_text(*point.host_memory_per_rank),
                                    memory_text(*point.device_memory_per_rank)));
    }
  }
  Facts facts = baseline_remark(curve);
  axes.append_to(facts, "axes");
  if (!rates.empty()) facts.emplace_back("samples/s", fmt::format("{}", fmt::join(rates, ", ")));
  growth.append_to(facts, "scaled");
  memory.append_to(facts, "memory");
  if (!verified.empty()) facts.emplace_back("verified", ranks_text(verified));
  verification.append_to(facts, "WRONG");
  soaks.append_to(facts, "soak");
  intervals.append_to(facts, "±95%");
  samples.append_to(facts, "steps");
  tracing.append_to(facts, "tracing");
  labels.append_to(facts, "label");
  folding.append_to(facts, "streams");
  graphs.append_to(facts, "graph");
  casts.append_to(facts, "casts");
  mfu.append_to(facts, "MFU");
  links.append_to(facts, "links");
  breakdown.append_to(facts, "traces");
  const Facts causes = cause_remarks(curve);
  facts.insert(facts.end(), causes.begin(), causes.end());
  return facts;
}

}  // namespace isoscale::analysis
