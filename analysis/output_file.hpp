// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string_view>

#include "settings/run_config.hpp"

namespace isoscale::analysis {

/// Writes a file in addition to the report's own output. `option` ("--trace") is the option that
/// asked for it. The file only appears once it is complete. Throws base::UsageError, which begins
/// with the option, when the file holds a run, exists and may not be replaced, or cannot be made;
/// base::Error when writing fails.
void write_output_file(std::string_view option, const std::filesystem::path& path,
                       settings::IfExists if_exists,
                       const std::function<void(std::ostream&)>& write);

}  // namespace isoscale::analysis
