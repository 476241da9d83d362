// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/machine.hpp"

/// A machine as it might be.
namespace isoscale::analysis {

/// What of a machine can be asked about: bandwidth between nodes and inside them, the time that a
/// message takes however small, the speed of GEMMs, and that of device memory.
enum class MachinePart : std::uint8_t { link_inter, link_intra, latency, gemm, memory };
/// As in --set: "link.inter".
[[nodiscard]] std::string_view name(MachinePart part);
[[nodiscard]] bool is_machine_part(std::string_view key);

struct Change {
  MachinePart part = MachinePart::gemm;
  double factor = 1;  ///< of speed; of latency, of time
  bool operator==(const Change&) const = default;
};

/// Changes that are made together.
struct WhatIf {
  std::string title;  ///< "link.inter=2x"
  std::vector<Change> changes;
};

/// "link.inter=2x,latency=0.5x". Throws base::UsageError with what would be accepted.
[[nodiscard]] WhatIf parse_what_if(std::string_view text);

/// The machine after all changes, where it is measured and where its sheet speaks. Of measured
/// communication, the time of a message of no size changes with latency and the rest with the
/// bandwidth of the links that it crosses; a group over several nodes counts as crossing the links
/// between nodes alone. Throws base::UsageError where the machine says nothing of a part.
[[nodiscard]] simulate::Machine changed(const simulate::Machine& machine, const WhatIf& what_if);

}  // namespace isoscale::analysis
