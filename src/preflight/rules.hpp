// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "preflight/check.hpp"

/// A rule judges the facts of a job and collects its findings. Results have no name at first;
/// check_job() sets it.
namespace isoscale::preflight {

using Results = std::vector<CheckResult>;

struct Place {
  std::string host{}, device{};
};
struct Finding {
  std::string what, cost, fix;
};
/// The texts of the result of a rule that found nothing wrong.
struct Otherwise {
  std::string fine;     ///< if ok: what was compared
  std::string unknown;  ///< if not checked: why nothing could be compared
  std::string how{};    ///< if not checked: how it could be compared
};

/// Collects the findings of one rule. The results have no name; the caller sets it.
class Findings {
 public:
  void warn(Place place, Finding finding);
  void stop(Place place, Finding finding);
  /// True if the fact is present. Each call counts one known or unknown fact, so that "ok" can say
  /// how many were unknown.
  template <class T>
  [[nodiscard]] bool knows(const std::optional<T>& fact) {
    fact ? ++known_ : ++unknown_;
    return fact.has_value();
  }
  void know() { ++known_; }
  void miss() { ++unknown_; }
  /// Returns the findings. If there are none, it returns one result: ok if any fact was known, else
  /// not checked.
  [[nodiscard]] Results results(const Otherwise& otherwise) &&;

 private:
  Results found_;
  std::size_t known_ = 0, unknown_ = 0;
};

/// A value that should equal the others of its kind.
struct Observed {
  Place place;
  std::optional<std::string> value;
  std::string kind{};  ///< values of one kind are compared
};
/// The texts of a finding about a differing value: the name of the quantity ("driver"), the cost
/// and the fix.
struct Difference {
  std::string_view quantity;
  std::string cost, fix;
  Verdict verdict = Verdict::warning;
};
/// Adds a finding for each value that differs from the most common value of its kind (the first of
/// equally common ones): "driver 550.54.15, elsewhere 560.35.03".
void find_differences(Findings& findings, std::span<const Observed> observed,
                      const Difference& difference);

/// Returns "c1", "c1, c2 and c3" or "c1, c2 and 30 more".
[[nodiscard]] std::string listed(std::span<const std::string> names);

/// Returns the most common of some values, the first of equally common ones; absent if there are
/// none.
template <class T>
[[nodiscard]] std::optional<T> most_common(std::span<const T> values) {
  std::map<T, std::size_t> counts;
  for (const T& value : values) ++counts[value];
  std::optional<T> most;
  for (const T& value : values) {
    if (!most || counts[value] > counts[*most]) most = value;
  }
  return most;
}

// The checks by subject, each from the file rules_SUBJECT.cpp.
[[nodiscard]] std::span<const Check> launch_checks();
[[nodiscard]] std::span<const Check> likeness_checks();
[[nodiscard]] std::span<const Check> gpu_checks();
[[nodiscard]] std::span<const Check> link_checks();
[[nodiscard]] std::span<const Check> adapter_checks();
[[nodiscard]] std::span<const Check> node_checks();
[[nodiscard]] std::span<const Check> environment_checks();
[[nodiscard]] std::span<const Check> sniff_checks();

}  // namespace isoscale::preflight
