// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/preflight/findings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace isoscale::system {

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
  constexpr std::size_t most = 3, shown = 2;  // as many as are read at a glance
  if (names.empty()) return {};
  const std::size_t first = names.size() > most ? shown : names.size() - 1;
  std::string text = fmt::format("{}", fmt::join(names.first(first), ", "));
  if (names.size() > most) return fmt::format("{} and {} more", text, names.size() - shown);
  return first == 0 ? names.back() : fmt::format("{} and {}", text, names.back());
}

double median(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, half);
  if (values.size() % 2 == 1) return *half;
  return (*std::max_element(values.begin(), half) + *half) / 2;
}

}  // namespace isoscale::system
