// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// The result of a preflight check, as run files and reports contain it.
namespace isoscale::results {

/// The result of a check.
/// - ok: the facts are known and nothing is wrong.
/// - not_checked: the facts could not be found out.
/// - warning: the run measures, but the problem may affect its results.
/// - stop: the results would mislead, so the run measures nothing unless --allow lets it.
enum class Verdict : std::uint8_t { ok, not_checked, warning, stop };
inline constexpr std::array all_verdicts{Verdict::ok, Verdict::not_checked, Verdict::warning,
                                         Verdict::stop};
/// Returns "ok", "not checked", "warning" or "stop".
[[nodiscard]] std::string_view name(Verdict verdict);

struct CheckResult {
  std::string name{};  ///< name of the check for --allow: "duplicate-gpu"
  Verdict verdict = Verdict::ok;
  std::string host{};    ///< one host, several ("c1, c2 and 30 more"), or "" = the whole job
  std::string device{};  ///< "GPU 3 (0000:5d:00.0)", "mlx5_2 port 1", "rank 12"; "" = none
  std::string what{};    ///< the finding, as a clause; if ok: what was compared
  std::string cost{};    ///< effect on the measurement; "" if ok or not checked
  std::string fix{};     ///< remedy; if not checked: a way to check; "" if ok
  bool allowed = false;  ///< a stop that --allow turned off

  bool operator==(const CheckResult&) const = default;
};

/// True if one of the results is a stop that is not allowed.
[[nodiscard]] bool stops(std::span<const CheckResult> results);

/// Writes a result on one line: "warning port-rate: c3, mlx5_0 port 1: what was found; what it
/// costs; what to do", without empty parts. An allowed stop begins "stop duplicate-gpu (allowed)".
[[nodiscard]] std::string to_sentence(const CheckResult& result);

}  // namespace isoscale::results
