// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Preflight judges a job by pure functions over its facts.
namespace isoscale::preflight {

/// ok: looked at and fine. not_checked: there was no source to look at, which is never "ok".
/// warning: measured all the same, but it costs. stop: what was measured would not be what it
/// seems.
enum class Verdict : std::uint8_t { ok, not_checked, warning, stop };
inline constexpr std::array all_verdicts{Verdict::ok, Verdict::not_checked, Verdict::warning,
                                         Verdict::stop};
/// "ok", "not checked", "warning", "stop"
[[nodiscard]] std::string_view name(Verdict verdict);

struct CheckResult {
  std::string name{};  ///< of the check: "duplicate-gpu"; what --allow takes
  Verdict verdict = Verdict::ok;
  std::string host{};    ///< one host, several ("c1, c2 and 30 more"), or "" = the whole job
  std::string device{};  ///< "GPU 3 (0000:5d:00.0)", "mlx5_2 port 1", "rank 12"; "" = none
  std::string what{};    ///< what was found, one clause; of a check that is ok: what was compared
  std::string cost{};    ///< what it costs the measurement; "" when ok or not checked
  std::string fix{};     ///< what to do; "" when ok; of not checked: how it could be
  bool allowed = false;  ///< a stop that --allow let pass

  bool operator==(const CheckResult&) const = default;
};

struct JobFacts;

/// One rule. Its results are one per host and device where something is wrong, else one.
struct Check {
  std::string_view name;
  std::string_view about;  ///< one clause for people: what it looks at
  std::vector<CheckResult> (*judge)(const JobFacts& job);
};
/// All of them, in the order of a report.
[[nodiscard]] std::span<const Check> all_checks();

/// Asks every check; results that differ in nothing but the host are one with all hosts. Stops
/// named in `allowed` are marked, and stop nothing. Throws base::UsageError for a name that no
/// check has.
[[nodiscard]] std::vector<CheckResult> check_job(const JobFacts& job,
                                                 const std::vector<std::string>& allowed);

/// True if one of them is a stop that is not allowed.
[[nodiscard]] bool stops(std::span<const CheckResult> results);

/// On one line: "warning port-rate: c3, mlx5_0 port 1: what was found; what it costs; what to do",
/// without parts that are empty; "stop duplicate-gpu (allowed): ...".
[[nodiscard]] std::string to_sentence(const CheckResult& result);

}  // namespace isoscale::preflight
