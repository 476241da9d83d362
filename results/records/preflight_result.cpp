// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/preflight_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>

namespace isoscale::results {

std::string_view name(Verdict verdict) {
  constexpr std::array<std::string_view, all_verdicts.size()> names{"ok", "not checked", "warning",
                                                                    "stop"};
  return names[static_cast<std::size_t>(verdict)];
}

bool stops(std::span<const CheckResult> results) {
  return std::ranges::any_of(results, [](const CheckResult& result) {
    return result.verdict == Verdict::stop && !result.allowed;
  });
}

std::string to_sentence(const CheckResult& result) {
  const auto joined = [](std::initializer_list<const std::string*> parts,
                         std::string_view between) {
    std::string text;
    for (const std::string* part : parts) {
      if (!part->empty()) text += fmt::format("{}{}", text.empty() ? "" : between, *part);
    }
    return text;
  };
  const std::string head =
      fmt::format("{} {}{}", name(result.verdict), result.name, result.allowed ? " (allowed)" : "");
  const std::string place = joined({&result.host, &result.device}, ", ");
  const std::string body = joined({&result.what, &result.cost, &result.fix}, "; ");
  return joined({&head, &place, &body}, ": ");
}

}  // namespace isoscale::results
