// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/findings/finding.hpp"

#include <fmt/format.h>

namespace isoscale::analysis {

std::string_view name(Concern concern) {
  switch (concern) {
    case Concern::hardware:
      return "hardware";
    case Concern::measurement:
      return "measurement";
    case Concern::program:
      break;
  }
  return "program";
}

std::string value_text(const Evidence& evidence) {
  return evidence.unit == Unit::text ? evidence.text : value_text(evidence.value, evidence.unit);
}

std::string to_text(const Evidence& evidence) {
  const std::string_view colon = evidence.unit == Unit::text ? ":" : "";
  return fmt::format("{}{} {}", evidence.what, colon, value_text(evidence));
}

}  // namespace isoscale::analysis
