// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace isoscale::base {

/// Describes the sources and the tools from which this program was built. The values are generated
/// at build time.
struct BuildInfo {
  std::string_view version;  ///< for example "0.1.0"
  std::string_view
      git_hash;  ///< "unknown" outside a git checkout; ends in "-dirty" with local changes
  std::string_view compiler;    ///< "GNU 12.2.0"
  std::string_view build_type;  ///< "Release"
};

[[nodiscard]] const BuildInfo& build_info();

}  // namespace isoscale::base
