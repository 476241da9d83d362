// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string_view>

#include "settings/run_config.hpp"

namespace isoscale::analysis {

/// Writes a file in addition to the report's own output, for the option `option` ("--trace"). The
/// file appears under its name only once it is complete. Throws base::UsageError, whose message
/// begins with the option, if the file contains a run, if it exists and may not be replaced, if it
/// is not a regular file, or if it cannot be created. Throws base::Error if writing fails.
void write_output_file(std::string_view option, const std::filesystem::path& path,
                       settings::IfExists if_exists,
                       const std::function<void(std::ostream&)>& write);

}  // namespace isoscale::analysis
