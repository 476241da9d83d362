// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// The parts of the detailed report, which --detail names.
namespace isoscale::analysis {

enum class Section : std::uint8_t {
  curves,
  breakdown,
  efficiency,
  waterfall,
  pop,
  strategies,
  phases,
  layers,
  soak,
  nodes,
  devices,
  findings,
  warnings,
  preflight,
  rows,
  calibration,
  legend,
};
inline constexpr std::size_t section_count = 17;

struct SectionName {
  Section section;
  std::string_view name;
  std::string_view sentence;  ///< what it shows
};
/// In the order of Section.
[[nodiscard]] std::span<const SectionName> section_names();

class Sections {
 public:
  /// All of them.
  Sections() { wanted_.set(); }
  /// "all", or names with commas between them. Throws base::UsageError that lists the names.
  [[nodiscard]] static Sections parse(std::string_view names);

  [[nodiscard]] bool has(Section section) const {
    return wanted_.test(static_cast<std::size_t>(section));
  }
  [[nodiscard]] bool are_all() const { return wanted_.all(); }

 private:
  std::bitset<section_count> wanted_;
};

/// The section of a line below a curve, by its key: "soak", "lost", "MFU".
[[nodiscard]] Section section_of_remark(std::string_view key);

}  // namespace isoscale::analysis
