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

/// A rule judges the facts of a job and gathers what it finds; its results have no name yet,
/// check_job gives them theirs.
namespace isoscale::preflight {

using Results = std::vector<CheckResult>;

struct Place {
  std::string host{}, device{};
};
struct Finding {
  std::string what, cost, fix;
};
/// The text of a rule where nothing is wrong.
struct Otherwise {
  std::string fine;     ///< what was compared
  std::string unknown;  ///< why nothing could be
  std::string how{};    ///< how it could be
};

/// The findings of one rule; whose name the results bear is left to the caller.
class Findings {
 public:
  void warn(Place place, Finding finding);
  void stop(Place place, Finding finding);
  /// True if a fact is there; both are counted, so that "ok" says of how many nothing is known.
  template <class T>
  [[nodiscard]] bool knows(const std::optional<T>& fact) {
    fact ? ++known_ : ++unknown_;
    return fact.has_value();
  }
  void know() { ++known_; }
  void miss() { ++unknown_; }
  /// Gives what was found; without anything one result: ok where something was known, else not
  /// checked.
  [[nodiscard]] Results results(const Otherwise& otherwise) &&;

 private:
  Results found_;
  std::size_t known_ = 0, unknown_ = 0;
};

/// Something that is to be the same in all places.
struct Observed {
  Place place;
  std::optional<std::string> value;
  std::string kind{};  ///< compared with others of this kind
};
/// Describes a value that differs from the most common value of its kind (of equally common ones
/// the first); `what` names the quantity: "driver 550.54.15, elsewhere 560.35.03".
struct Difference {
  std::string_view quantity;
  std::string cost, fix;
  Verdict verdict = Verdict::warning;
};
void find_differences(Findings& findings, std::span<const Observed> observed,
                      const Difference& difference);

/// "c1", "c1, c2 and c3", "c1, c2 and 30 more"
[[nodiscard]] std::string listed(std::span<const std::string> names);

/// The most common of some values, of equally common ones the first; absent for none.
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
