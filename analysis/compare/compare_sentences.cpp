// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/comparison_internals.hpp"
#include "analysis/curves_and_baselines.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/text.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::analysis::compare {
namespace {

constexpr std::size_t most_of_name = 120;  ///< characters of a title or file name that are shown
constexpr double hundred = 100;
constexpr double twice = 2;  ///< from this ratio on, "2.4x" is said instead of a percentage

std::string one_decimal(double value) {
  const std::string text = fmt::format("{:.1f}", value);
  return text == "-0.0" ? "0.0" : text;
}

// Only `lower` is checked, since both ends of an interval are always set together.
statistics::Located negative(const statistics::Located& at) {
  statistics::Located result{.value = -at.value};
  if (at.lower) {
    result.lower = -*at.upper;
    result.upper = -*at.lower;
  }
  return result;
}

std::string_view mark_of(const statistics::Located& at) { return holds_value(at) ? "" : " !"; }

std::string count_text(std::size_t count, std::string_view side) {
  if (count > 2) return fmt::format("{} launches of {}", count, side);
  return fmt::format("{} of {}", count == 1 ? "one launch" : "two launches", side);
}

/// Returns the reason why a difference has no interval: " in one launch of A and two launches of
/// B", or that the point's baseline has too few launches.
std::string few_launches(const Comparison& of, const Difference& at) {
  if (at.launches_first >= least_launches && at.launches >= least_launches) {
    return fmt::format("; fewer than {} launches of its baseline", least_launches);
  }
  return fmt::format(" in {} and {}", count_text(at.launches_first, of.sides.front().name),
                     count_text(at.launches, of.sides[at.side].name));
}

/// The causes of a difference, and how they are shown.
struct Causes {
  const std::vector<CausePart>& parts;
  double scale = 1;  ///< factor from the unit of a part to the unit that is shown
  std::string_view unit;
  double whole = 0;  ///< the whole difference, in the unit of the parts
};

/// Returns "8.1 dp transfer, 2.0 imbalance, -0.4 traced steps differ"; "" if there are no causes.
std::string causes_text(const Causes& of) {
  std::vector<std::string> parts;
  bool uncertain = false;
  for (const CausePart& at : of.parts) {
    const std::string size = one_decimal(of.scale * at.value);
    if (size == "0.0") continue;
    const bool is_cause = at.cause != untraced_part;
    parts.push_back(
        fmt::format("{}{} {}", size, of.unit,
                    is_cause ? render::escape(at.cause) : std::string{"traced steps differ"}));
    uncertain = uncertain || (!is_cause && std::abs(at.value) > std::abs(of.whole));
  }
  std::string text = base::listed(parts);
  if (uncertain) text += " (more than the difference: the causes are uncertain)";
  return text;
}

/// Appends the causes to a sentence, and calls them uncertain if the difference is not established.
std::string with_causes(const std::string& said, const std::string& causes, bool established) {
  if (causes.empty()) return said;
  return fmt::format("{}{}{}", said, established ? ": " : "; uncertain causes: ", causes);
}

constexpr std::string_view not_established = "as measured, not established: ";

std::string at_ranks(const Difference& at) { return "at " + base::counted(at.ranks, "rank"); }

/// Returns the part of a sentence that says that a difference in efficiency lies outside its
/// interval. This is possible because the value comes from medians over launches and the interval
/// from means.
std::string apart_from_interval(const statistics::Located& at) {
  return fmt::format(
      "{} points between the medians over launches, outside the interval {} to {} "
      "of the launches",
      one_decimal(hundred * at.value), one_decimal(hundred * *at.lower),
      one_decimal(hundred * *at.upper));
}

/// Returns "12%", or "9.4%" with one decimal below 10%.
std::string share_text(double share) {
  constexpr double few = 0.0995;
  return fmt::format("{:.{}f}%", hundred * std::abs(share), std::abs(share) < few ? 1 : 0);
}

/// Returns a ratio of throughputs in words: "12% slower", "3.1% faster", "as fast", "2.4x as fast".
std::string speed_text(double ratio) {
  if (ratio >= twice) return fmt::format("{:.1f}x as fast", ratio);
  if (share_text(ratio - 1) == share_text(0)) return "as fast";
  return fmt::format("{} {}", share_text(ratio - 1), ratio < 1 ? "slower" : "faster");
}

/// Returns the interval of a ratio of throughputs: "between 9% and 15%". If its ends differ in
/// direction, or if an end is at least twice as fast, both are in the words of speed_text():
/// "between 3.1% slower and 12% faster", "between 80% faster and 2.4x as fast". If both ends round
/// to "as fast", returns "within 0.1%".
std::string between_text(const statistics::Located& at) {
  const double lower = *at.lower, upper = *at.upper;
  if (upper < 1) {
    return fmt::format("between {} and {}", share_text(1 - upper), share_text(1 - lower));
  }
  if (lower > 1 && upper < twice) {
    return fmt::format("between {} and {}", share_text(lower - 1), share_text(upper - 1));
  }
  const std::string from = speed_text(lower), to = speed_text(upper);
  return from == to && from == speed_text(1) ? "within 0.1%"
                                             : fmt::format("between {} and {}", from, to);
}

std::string cause_text(const Overall& at) {
  constexpr double mostly = 0.5, worth_saying = 0.2;
  if (at.cause_share < worth_saying) return "";
  if (at.cause_share > mostly) return "; mostly " + render::escape(at.cause);
  return fmt::format("; largest cause {}, {} of it", render::escape(at.cause),
                     share_text(at.cause_share));
}

}  // namespace

std::string with_interval(const statistics::Located& at, std::string_view sign,
                          std::string_view word) {
  const std::string value = one_decimal(hundred * at.value);
  if (!at.lower || *at.lower == *at.upper) return fmt::format("{}{}{}", value, sign, word);
  const double half = (*at.upper - *at.lower) / 2;
  const double middle = (*at.upper + *at.lower) / 2;
  constexpr double even = 0.1;
  if (std::abs(middle - at.value) <= even * half) {
    return fmt::format("{}{} ± {}{}", value, sign, one_decimal(hundred * half), word);
  }
  return fmt::format("{}{}{} ({} to {})", value, sign, word, one_decimal(hundred * *at.lower),
                     one_decimal(hundred * *at.upper));
}

std::string efficiency_sentence(const Comparison& of, const Difference& at) {
  if (!at.efficiency) return "";
  const statistics::Located& by = *at.efficiency;
  const std::string& side = of.sides[at.side].name;
  const bool lower = by.value < 0, established = is_established(by, 0);
  const std::string causes = causes_text({.parts = at.why.efficiency,
                                          .scale = lower ? hundred : -hundred,
                                          .unit = "",
                                          .whole = by.value});
  if (!holds_value(by)) {
    return with_causes(fmt::format("no difference in {}'s efficiency is established {}: {}", side,
                                   at_ranks(at), apart_from_interval(by)),
                       causes, established);
  }
  const std::string size = with_interval(lower ? negative(by) : by, "", " points");
  const std::string what = fmt::format("{} {} {}", size, lower ? "lower" : "higher", at_ranks(at));
  if (by.lower && !established) {
    return with_causes(
        fmt::format("no difference in {}'s efficiency is shown: {} as measured", side, what),
        causes, established);
  }
  std::string said = fmt::format("{}'s efficiency is {}", side, what);
  if (!established) said = fmt::format("{}{}{}", not_established, said, few_launches(of, at));
  return with_causes(said, causes, established);
}

std::string throughput_sentence(const Comparison& of, const Difference& at) {
  const std::string& side = of.sides[at.side].name;
  const std::string where = at_ranks(at);
  const std::string measured =
      fmt::format("{} ({})", change_text(at.throughput.value), change_interval(at.throughput));
  switch (at.verdict) {
    case Verdict::regression:
      return fmt::format("{}'s throughput is at least {} lower {}, p = {:.2g}: {}", side,
                         render::percent(of.gate->loss), where, *at.p_regression, measured);
    case Verdict::passed:
      return fmt::format("{}'s throughput is less than {} lower {}, p = {:.2g}: {}", side,
                         render::percent(of.gate->loss), where, *at.p_passed, measured);
    case Verdict::too_noisy:
      return fmt::format(
          "launches differ too much to tell if {}'s throughput is {} lower {}, p = {:.2g}: {}",
          side, render::percent(of.gate->loss), where, std::min(*at.p_regression, *at.p_passed),
          measured);
    case Verdict::no_difference:
      return fmt::format("no difference in {}'s throughput is shown {}: {}", side, where, measured);
    default:
      break;
  }
  const bool lower = at.throughput.value < 1;
  const auto change = [lower](double ratio) {
    return render::percent(lower ? 1 - ratio : ratio - 1);
  };
  const std::string text =
      fmt::format("{}'s throughput is {} {} {}", side, change(at.throughput.value),
                  lower ? "lower" : "higher", where);
  if (at.verdict == Verdict::one_launch) {
    return fmt::format("{}{}; a claim needs at least {} launches per side", text,
                       few_launches(of, at), least_launches);
  }
  const auto& [value, least, most] = at.throughput;
  return fmt::format("{} ({} to {})", text, change(lower ? *most : *least),
                     change(lower ? *least : *most));
}

double work_ratio(const Comparison& of, const Difference& at) {
  const auto work = [&](std::size_t side) {
    return point_of(of.curves[at.curve].sides[side]->curve, at.ranks)->data->work_per_step;
  };
  return work(at.side) / work(0);
}

std::string step_sentence(const Comparison& of, const Difference& at) {
  const Why& why = at.why;
  if (!(why.step_first > 0)) return "";
  const double ratio = why.step_here / why.step_first;
  const std::string size = render::percent(std::abs(ratio - 1));
  if (size == render::percent(0.0)) return "";
  const bool longer = ratio > 1;
  const std::string changed = ratio >= twice
                                  ? fmt::format("takes {:.1f}x as long", ratio)
                                  : fmt::format("is {} {}", size, longer ? "longer" : "shorter");
  const double work = work_ratio(of, at);
  const std::string scaled =
      work == 1 ? ""
                : fmt::format(" ({} scaled to {:.4g}x the work)",
                              units::format(units::Seconds{why.step_first / work}), work);
  const std::string what =
      fmt::format("{}'s step {} {}, {} against {}{}", of.sides[at.side].name, changed, at_ranks(at),
                  units::format(units::Seconds{why.step_here}),
                  units::format(units::Seconds{why.step_first}), scaled);
  const bool established = at.verdict == Verdict::regression || is_established(at.throughput, 1);
  const std::string said = established ? what : fmt::format("{}{}", not_established, what);
  if (!why.no_step.empty()) return said + "; " + why.no_step;
  return with_causes(said,
                     causes_text({.parts = why.step,
                                  .scale = (longer ? hundred : -hundred) / why.step_first,
                                  .unit = "%",
                                  .whole = why.step_here - why.step_first}),
                     established);
}

std::vector<std::string> sentences_of(const Comparison& of, const Difference& at) {
  std::vector<std::string> all{throughput_sentence(of, at), efficiency_sentence(of, at),
                               step_sentence(of, at)};
  std::erase(all, "");
  return all;
}

std::vector<std::string> caveats_of(const Difference& at) {
  std::vector<std::string> all;
  if (at.efficiency && !at.why.no_efficiency.empty()) all.push_back(at.why.no_efficiency);
  for (const std::string& note : at.why.notes) all.push_back(render::escape(note));
  return all;
}

std::string change_text(double ratio) {
  const std::string text = fmt::format("{:+.1f}%", hundred * (ratio - 1));
  return text == "-0.0%" ? "+0.0%" : text;
}

std::string change_interval(const statistics::Located& ratio) {
  if (!ratio.lower) return std::string{render::undefined};
  return fmt::format("{} to {}{}", change_text(*ratio.lower), change_text(*ratio.upper),
                     mark_of(ratio));
}

std::string points_text(const std::optional<statistics::Located>& difference) {
  if (!difference) return std::string{render::undefined};
  return fmt::format("{:+.1f}", hundred * difference->value);
}

std::string points_interval(const std::optional<statistics::Located>& difference) {
  if (!difference || !difference->lower) return std::string{render::undefined};
  return fmt::format("{:+.1f} to {:+.1f}{}", hundred * *difference->lower,
                     hundred * *difference->upper, mark_of(*difference));
}

std::string gate_word(const Gate& gate) {
  if (gate.fails()) return "FAILED";
  return gate.is_decided() ? "passed" : "undecided";
}

std::string gate_sentence(const Comparison& of) {
  const Gate& gate = *of.gate;
  std::vector<std::string> parts;
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
  };
  add(gate.regressions, base::plural(gate.regressions, "regression"));
  add(gate.passed, "passed");
  add(gate.too_noisy, "too noisy to tell");
  add(gate.one_launch, "with too few launches");
  add(gate.absent, "missing on another side");
  return fmt::format("gate {}: {}: of {}: {}", render::percent(gate.loss), gate_word(gate),
                     base::counted(of.differences.size() + gate.absent, "point"),
                     fmt::join(parts, ", "));
}

std::string only_sentence(const Comparison& of, const OnlyOn& only) {
  return fmt::format("{}{} only in {}: {}", render::escape_up_to(only.title, most_of_name),
                     only.ranks.empty() ? "" : ", " + base::counted(only.ranks, "rank"),
                     of.sides[only.side].name, render::escape(only.reason));
}

std::string files_text(const Side& side) {
  constexpr std::size_t most_files = 4;
  std::vector<std::string> files;
  for (const RunReport& run : side.runs) {
    files.push_back(render::escape_up_to(run.file, most_of_name));
  }
  return base::listed(files, most_files);
}

std::string overall_sentence(const Comparison& of, const Overall& at) {
  const std::string &first = of.sides.front().name, &side = of.sides[at.side].name;
  if (at.points == 0) return fmt::format("{} and {} have no point that was compared", first, side);
  const std::string points =
      at.compared == 1 ? "at the one point compared"
      : at.points == at.compared
          ? fmt::format("over {} points", at.compared)
          : fmt::format("over the {} of {} points with at least {} launches per side", at.points,
                        at.compared, least_launches);
  const std::string marked =
      at.marked == 0 ? "" : fmt::format("; {} of them have labels or unlike settings", at.marked);
  const std::string speed = speed_text(at.throughput.value);
  const std::string said =
      fmt::format("{} is {} {} {}", side, speed, speed.ends_with("as fast") ? "as" : "than", first);
  if (!at.throughput.lower) {
    return fmt::format("{} {}, as measured; a claim needs at least {} launches per side{}", said,
                       points, least_launches, marked);
  }
  const std::string between = between_text(at.throughput);
  if (!is_established(at.throughput, 1)) {
    return fmt::format("no difference is shown {}: {} as measured, {}{}", points, said, between,
                       marked);
  }
  return fmt::format("{} {}, {}{}{}", said, points, between, cause_text(at), marked);
}

}  // namespace isoscale::analysis::compare
