// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "analysis/causes/cause_tables.hpp"
#include "analysis/rank_facts.hpp"
#include "analysis/render/sentences.hpp"
#include "analysis/render/text_escape.hpp"
#include "base/text.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

/// "5.0% (4.1%-5.9%)".
std::string with_interval(const Located& at) {
  std::string text = percent(at.value);
  if (at.lower && at.upper)
    text += fmt::format(" ({} to {})", percent(*at.lower), percent(*at.upper));
  return text;
}

std::string number_with_interval(const Located& at) {
  return fmt::format("{:.3g} ({:.3g} to {:.3g})", at.value, at.lower.value_or(at.value),
                     at.upper.value_or(at.value));
}

std::string ranks_prefix(const PointReport& point) {
  return base::counted(point.data->ranks, "rank") + ": ";
}

void add_laws(const Curve& curve, Facts& facts) {
  std::string serial;
  for (const PointReport& point : curve.points) {
    if (!point.causes.serial_fraction) continue;
    serial +=
        (serial.empty() ? "" : ", ") +
        fmt::format("{} on {}", with_interval(*point.causes.serial_fraction), point.data->ranks);
  }
  if (!serial.empty()) facts.emplace_back("serial", "Karp-Flatt serial fraction: " + serial);
  if (curve.laws.amdahl) {
    facts.emplace_back("Amdahl", "serial fraction " + with_interval(*curve.laws.amdahl));
  }
  if (curve.laws.gustafson) {
    facts.emplace_back("Gustafson", "serial fraction " + with_interval(*curve.laws.gustafson));
  }
  if (curve.laws.usl) {
    const Usl& usl = *curve.laws.usl;
    std::string text =
        fmt::format("contention {}, coherency {}", number_with_interval(usl.contention),
                    number_with_interval(usl.coherency));
    if (usl.peak) text += fmt::format(", most throughput on {:.0f} times the baseline", *usl.peak);
    facts.emplace_back("USL", text);
  }
}

std::string unexplained(const PointReport& point) {
  const LargestUnexplained& at = *point.breakdown.largest;
  return fmt::format(
      "not closed: largest unexplained interval {} on rank {}, step {}, {} after it "
      "began{}",
      units::format(units::Seconds{at.length}), world_rank(*point.data, at.rank), at.step,
      units::format(units::Seconds{at.begin}), at.after.empty() ? "" : ", after " + at.after);
}

/// Whether the traced steps stand for the others; "" when they do.
std::string unlike_text(const PointReport& point) {
  constexpr double alike = 0.1;
  if (!point.step_time || !point.breakdown.mean) return "";
  const double traced = point.breakdown.slowest_step, step = point.step_time->median;
  if (std::abs(traced / step - 1) <= alike) return "";
  return fmt::format(
      "traced steps took {}, the others {}: shares and causes are of the traced ones",
      units::format(units::Seconds{traced}), units::format(units::Seconds{step}));
}

}  // namespace

Facts cause_remarks(const Curve& curve) {
  Facts facts;
  Sentences lost;
  Sentences clocks;
  Sentences traces;
  for (const PointReport& point : curve.points) {
    for (const NamedCause& cause : point.causes.named) {
      facts.emplace_back("cause", ranks_prefix(point) + escape(cause.text));
    }
    const bool open = std::ranges::find(point.labels, "not-closed") != point.labels.end();
    if (open && point.breakdown.largest) {
      facts.emplace_back("other", ranks_prefix(point) + unexplained(point));
    }
    if (point.causes.waterfall) {
      for (const std::string& sentence : point.causes.waterfall->missing) lost.add(point, sentence);
      if (!point.causes.waterfall->explains) {
        lost.add(point,
                 "no shares of causes: few steps count, or traced steps differ by over 10% of "
                 "the step");
      }
    }
    if (point.breakdown.clock_error.value_or(0) > 0) {
      clocks.add(point, fmt::format("aligned to {}; no wait below that is counted",
                                    units::format(units::Seconds{*point.breakdown.clock_error})));
    }
    traces.add(point, unlike_text(point));
  }
  lost.append_to(facts, "lost");
  clocks.append_to(facts, "clocks");
  traces.append_to(facts, "traces");
  add_laws(curve, facts);
  return facts;
}

}  // namespace isoscale::analysis
